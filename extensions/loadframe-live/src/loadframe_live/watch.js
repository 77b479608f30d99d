// A watch: its alarms, its last day over time, response against load, and the limits with what is expected of them.
import { bytes, counted, duration, el, fact, figure, fold, limit, list, number, para, pill, scatter, section, sentence, timeline } from "/draw.js";

// A time; with its date if that is not today.
function when(s) {
  const at = new Date(1000 * s), today = at.toDateString() === new Date().toDateString();
  return at.toLocaleString("en-GB", { ...(today ? {} : { dateStyle: "medium" }), timeStyle: "short" });
}
const named = (heading) => heading.load || "load";
const range = (at, show) => (at ? `${show(at.value ?? at.load)}${at.low != null && at.high != null ? ` (${show(at.low)} to ${show(at.high)})` : ""}` : "");

export function merge(watch, change) {
  const minutes = new Map(watch.minutes.map((minute) => [minute.at_s, minute]));
  for (const minute of change.minutes ?? []) minutes.set(minute.at_s, minute);
  const last = change.minutes?.at(-1)?.at_s ?? watch.minutes.at(-1)?.at_s; // a clock that was set back begins again there
  Object.assign(watch, change, { minutes: [...minutes.values()].filter((minute) => minute.at_s > last - 86400 && minute.at_s <= last) });
}

function alarm({ title, at_s, ends_s, evidence, try: remedies }) {
  return el("article", { class: "alarm" }, el("h3", {}, title), para("note", when(at_s), ends_s ? ` · expected ${range(ends_s, when)}` : ""),
    list(evidence?.map((row) => sentence(row.text ?? row))), remedies?.length ? para("note try", "What to try") : "", list(remedies?.map(sentence)));
}

function use(id, { title, share, reached, at_load, at_s }, points) {
  const over = points.filter((point) => point.use?.[id] !== undefined).map((point) => ({ x: point.at_s, y: point.use[id] }));
  const ahead = [at_load && `reached at a load of ${range(at_load, number)}`, at_s && `expected ${range(at_s, when)}`].filter(Boolean).join(", ");
  return limit(null, id, title, { share, reached, words: `${number(100 * share)} %${reached ? " · reached" : ""}${ahead && ` · ${ahead}`}`, over });
}

// That there is no alarm says little while it learns.
function calm(watch) {
  const learning = Object.keys(watch.model.learning ?? {});
  if (!watch.model.rows) return "No alarm so far. What is normal here is not known yet: a limit that is reached would be told, a change or a slow leak would not.";
  return learning.length ? `No alarm so far. It still learns what is normal (${learning.join(", ").replaceAll("_", " ")}).` : `No alarm since ${when(Date.parse(watch.heading.since) / 1000)}.`;
}

export function paint(main, watch) {
  const { heading, model, alarms, gaps, cost } = watch, minutes = watch.recent?.length ? watch.recent : watch.minutes, width = Math.max(300, Math.min(main.clientWidth - (main.clientWidth > 960 ? 460 : 40), 840));
  const lines = [["load", heading.load ? `Load: ${heading.load}` : "Load", ""], ["throughput", "Throughput, per second", "/s"], ["response_ms", "Response of the unit of work, in ms", " ms"]];
  const charts = lines.filter(([key]) => minutes.some((minute) => minute[key] !== null)).map(([key, what, unit]) => figure(what, timeline({ minutes, key, gaps, alarms, width, height: 170, what, unit })));
  const against = minutes.filter((minute) => minute.load !== null && minute.response_ms !== null);
  if (against.length > 2) charts.push(figure("Response of the unit of work against load, in ms", scatter({ points: against.map((m) => ({ x: m.load, y: m.response_ms })), bend: model.bend, width, height: 230, axis: named(heading), what: "Response in ms" })));
  const uses = Object.entries(watch.limits).filter(([, row]) => row.share >= 0.005).sort((a, b) => b[1].share - a[1].share).slice(0, 9);
  const highest = Math.max(model.highest_load ?? 0, ...minutes.map((minute) => minute.load ?? 0));
  main.replaceChildren(
    para("kicker", pill(watch.status, true), ` ${heading.host ?? ""}`),
    el("h1", {}, heading.subject || "A watch"), [watch.error, watch.blind].filter(Boolean).map((words) => para("error", sentence(words))),
    alarms.length ? el("section", { class: "alarms", "aria-label": "Alarms" }, alarms.slice(-3).reverse().map(alarm), alarms.length > 3 ? para("note", `and ${alarms.length - 3} before`) : "") : para("answer", calm(watch)),
    el("div", { class: "two" }, el("div", {}, charts.length ? charts : para("note", "Nothing was sampled yet.")), section("Limits in use", para("note", uses.length ? `At the last reading. The small line: over ${duration(minutes.at(-1).at_s - minutes[0].at_s)}.` : ""), uses.length ? el("ul", { class: "limits" }, uses.map(([id, row]) => use(id, row, minutes))) : para("note", "None was read yet."))),
    el("div", { class: "facts" }, el("dl", {}, heading.since ? fact("Since", when(Date.parse(heading.since) / 1000)) : "", minutes.length ? fact("Last reading", when(minutes.at(-1).at_s)) : "", heading.interval_s ? fact("Read every", duration(heading.interval_s)) : "", heading.every_s ? fact("A unit of work every", duration(heading.every_s)) : "",
      model.bend?.load ? fact("Response bends at", `${range(model.bend, number)} ${named(heading)}`) : "", highest ? fact("Highest load so far", number(highest)) : "",
      cost?.elapsed_s ? fact("The watch's own cost", `${number((100 * (cost.cpu_s + (cost.children_cpu_s ?? 0))) / cost.elapsed_s, 2)} % of one CPU, ${bytes(cost.rss_bytes ?? 0)}${cost.elapsed_s < 600 ? ", its start included" : ""}`) : "")),
    gaps.length ? fold(`${counted(gaps.length, "gap")} in the record`, list(gaps.map((gap) => `${when(gap.from_s)}, ${duration(gap.seconds ?? 0)}: ${gap.words || gap.reason}`), { class: "found" })) : "");
}
