// The live page: a list of runs, a run that grows while it is measured, and its report. docs/live.md says what it shows.
import { bytes, chart, counted, duration, el, fact, figure, fold, limit, list, number, para, pill, quiet, section, series } from "/draw.js";
import { merge, paint as paintWatch } from "/watch.js";

const $ = (id) => document.getElementById(id);
const main = $("main");
const given = /^#token=([\w-]+)$/.exec(location.hash);
if (given) {
  sessionStorage.setItem("token", given[1]);
  history.replaceState(null, "", "/#/");
}
let rows = new Map(), run = null, after = "", parts = {};

async function ask(path, headers = {}, signal) {
  const answer = await fetch(path, { headers: { ...headers, Authorization: `Bearer ${sessionStorage.getItem("token")}` }, signal });
  if (answer.status === 401) locked();
  if (!answer.ok) throw new Error(`${answer.status}`);
  return answer;
}
function locked() {
  nothing("This page needs its key", el("p", {}, "Open the address that `loadframe serve` printed in your terminal. Each start of the server has a new one."));
  linked("off", "locked");
  throw new Error("locked");
}
const nothing = (title, then) => main.replaceChildren(el("section", { class: "empty" }, el("h1", {}, title), then));
function linked(state, words) {
  $("link").dataset.state = state;
  if ($("link").textContent !== words) $("link").textContent = words;
}

// --- what comes in

const count = (id) => Number(id.split("-")[1]);
async function listen() {
  for (;;) {
    try {
      const reader = (await ask("/api/events", { "Last-Event-ID": after })).body.pipeThrough(new TextDecoderStream()).getReader();
      linked("on", "live");
      for (let rest = ""; ; ) {
        const { value, done } = await reader.read();
        if (done) break;
        const events = (rest + value).split("\n\n");
        rest = events.pop();
        for (const event of events) await take(Object.fromEntries(event.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)])));
      }
    } catch (error) {
      if (error.message === "locked") return;
    }
    linked("wait", "reconnecting");
    await new Promise((done) => setTimeout(done, 1000));
  }
}
async function take({ id, event, data }) {
  if (!event) return;
  if (event === "reset") return void (await load(), await show());
  after = id;
  const change = JSON.parse(data);
  if (event === "runs") {
    for (const row of change.runs) rows.set(row.id, row);
    if (!run) listed();
  } else if (event === "change" && run?.id === change.id && count(id) > count(run.after)) {
    if (run.minutes) merge(run, change);
    else {
      run.steps.push(...(change.steps ?? []));
      run.lines.push(...(change.lines ?? []));
      Object.assign(run.limits, change.limits);
      for (const name of ["heading", "now", "recorder", "error"]) if (name in change) run[name] = change[name];
    }
    draw();
  }
}
async function load() {
  const all = await (await ask("/api/runs")).json();
  rows = new Map(all.runs.map((row) => [row.id, row]));
  after = all.after;
}

// --- the list

const ORDER = { running: 0, watching: 1 };
const when = (iso) => (iso ? el("time", { datetime: iso }, new Date(iso).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" })) : "");
function total(all) {
  const watches = all.filter((row) => row.watch).length, runs = all.length - watches;
  return [runs || !watches ? counted(runs, "run") : "", watches ? counted(watches, "watch", "watches") : ""].filter(Boolean).join(", ");
}
function listed() {
  $("where").replaceChildren("Runs");
  document.title = "Loadframe";
  const selected = document.activeElement?.getAttribute("href");
  const sorted = [...rows.values()].sort((a, b) => (ORDER[a.status] ?? 2) - (ORDER[b.status] ?? 2) || (b.started_at ?? "").localeCompare(a.started_at ?? ""));
  const items = sorted.map((row) =>
    el("li", {}, el("a", { class: "row", href: `#/${row.id}` },
      el("span", { class: "top" }, el("b", {}, row.study || row.name), pill(row.status, row.watch), quiet(row.version || row.target)),
      el("span", { class: "question" }, row.answer || row.question || row.error),
      el("span", { class: "quiet when" }, when(row.started_at)))));
  main.replaceChildren(el("h1", { class: "thin" }, total(sorted)),
    items.length ? el("ol", { class: "rows" }, items) : para("empty", "No run is here yet. This page shows one as soon as it begins."));
  if (selected) main.querySelector(`a[href="${CSS.escape(selected)}"]`)?.focus();
}

// --- a run

const colours = ["a", "b", "c", "d", "e"];
const order = (name) => Object.keys(run.heading.treatments).indexOf(name);
const called = (name) => run.heading.treatments[name] || name;
const colour = (name) => `c-${colours[Math.max(0, order(name)) % colours.length]}`;
const axis = () => run.heading.unit || run.heading.axis.replaceAll("_", " ");
const at = (level) => (run.heading.unit ? `${number(level)} ${level === 1 ? axis().replace(/ies$/, "y").replace(/s$/, "") : axis()}` : `${axis()} ${number(level)}`);
const states = (key) => series(run.steps, key, run.heading.curves).sort((a, b) => order(a.name) - order(b.name));
const folder = () => run.id.slice(run.id.indexOf("/") + 1);
const button = (href, words) => el("a", { class: "button", href }, words);
function frame() {
  const { heading } = run;
  parts = {};
  $("where").replaceChildren(el("a", { href: "#/" }, "Runs"), el("span", { class: "far" }, ` / ${heading.name ?? folder()}`));
  document.title = `${(run.minutes ? heading.subject : heading.study) ?? folder()}: Loadframe`;
  if (run.minutes) return;
  parts = Object.fromEntries(["now", "facts", "curves", "limits", "findings", "steps", "log", "about"].map((name) => [name, el(name === "log" ? "ol" : name === "limits" ? "ul" : "div", { class: name })]));
  parts.log.setAttribute("role", "log");
  parts.log.setAttribute("tabindex", "0");
  main.replaceChildren(parts.about, parts.now,
    el("div", { class: "two" }, parts.curves, section("Limits in use", (parts.which = para("note")), parts.limits)),
    parts.findings, parts.facts, (parts.logged = section("Log", parts.log)), fold("Every step as a table", parts.steps));
}
let wanted = 0;
const draw = () => (wanted ||= requestAnimationFrame(() => ((wanted = 0), run && !parts.report && paint())));
function paint() {
  const { heading } = run;
  if (run.minutes) return paintWatch(main, run);
  if (!heading.treatments) return main.replaceChildren(para("kicker", pill("unreadable")), el("h1", {}, folder()), para("error", run.error));
  if (!parts.about.isConnected) frame(); // it could not be read before
  const report = heading.has_report ? button(`#/${run.id}/report`, "Open the report") : "";
  parts.about.replaceChildren(para("kicker", pill(heading.status), ` ${heading.study} · ${heading.version || heading.target} · ${heading.workload}`),
    el("h1", {}, heading.question), heading.answer ? para("answer", heading.answer) : "", run.error ? para("error", run.error) : "", report);
  clock();
  curves();
  limits();
  findings();
  facts();
  log();
  table();
}
function clock() {
  if (!run || run.minutes || parts.report) return;
  const { heading, now } = run, running = heading.status === "running";
  const phase = run.lines.findLast((line) => line.event === "phase");
  parts.now.hidden = !running;
  if (!running) return;
  const since = (at) => (Date.now() - Date.parse(at)) / 1000;
  const step = now && `${now.purpose === "warming" ? "Warming up" : "Measuring"} at ${at(now.level)}, ${called(now.treatment)}`;
  const spent = heading.started_at ? `${duration(since(heading.started_at))}${heading.budget_s ? ` of ${duration(heading.budget_s)}` : ""}` : "";
  const bar = el("progress", { max: 1, value: now ? Math.min(since(now.at) / now.seconds, 1) : 0, "aria-label": "This step" });
  parts.now.replaceChildren(el("div", {}, el("b", {}, step || "Preparing"), quiet(phase ? phase.words : "")), bar, quiet(`${run.steps.length} steps · ${spent}`));
}
function curves() {
  const { heading, now } = run, width = Math.max(300, Math.min(parts.curves.clientWidth, 900));
  const level = heading.status === "running" && now ? now.level : null;
  const both = [["throughput", `Throughput: ${heading.work} per second`, "/s", Math.max(260, width * 0.46)], ["p95_ms", "95th percentile of the latency, in ms (log scale)", " ms", Math.max(170, width * 0.26)]];
  const legend = states("throughput").map(({ name }) => el("li", { class: colour(name) }, el("b", {}, name), ` ${heading.treatments[name] ?? ""}`));
  parts.curves.replaceChildren(el("ul", { class: "legend", "aria-label": "States of the target" }, legend), ...both.map(([key, what, unit, height]) => {
    const lines = states(key);
    const known = Object.fromEntries(Object.entries(heading.knees).filter(() => key === "throughput").slice(-1));
    if (key === "p95_ms" && !lines.length && run.steps.length) return "";
    return figure(what, chart({ lines, colour, levels: heading.levels, now: level, knees: known, width, height, axis: axis(), what, unit, log: key === "p95_ms" }));
  }));
}
function limits() {
  const counting = run.steps.filter((step) => step.counts), last = counting.at(-1);
  const uses = Object.entries(last?.uses ?? {}).sort((a, b) => b[1][0] - a[1][0]).slice(0, 9);
  parts.which.textContent = last ? `In the last step: ${at(last.level)}, ${called(last.treatment)}. The small line: over all loads of this state.` : "They appear with the first step.";
  const old = new Map([...parts.limits.children].map((item) => [item.dataset.id, item]));
  parts.limits.replaceChildren(...uses.map(([id, [share, words, reached]]) => {
    const over = series(counting.filter((step) => step.treatment === last.treatment).map((step) => ({ ...step, use: step.uses[id]?.[0] ?? 0 })), "use");
    return limit(old.get(id), id, run.limits[id].title, { share, reached, words: reached ? `${words} · reached` : words, over: over[0].points });
  }));
}
function findings() {
  const item = (kind, tag, ...inside) => [el("span", { class: `tag ${kind}` }, tag), ...inside];
  const causes = run.heading.findings.map(({ status, title, from }) => item(status, status, ` ${title}`, from && quiet(` ${from}`)));
  const tried = run.heading.trials.map(({ kept, title, told }) => item(kept ? "confirmed" : "refuted", kept ? "kept" : "reverted", ` ${title}: ${told}`));
  const under = (title, items) => (items.length ? section(title, list(items, { class: "found" })) : "");
  parts.findings.replaceChildren(under("Causes", causes), under("Changes tried", tried));
  parts.findings.hidden = !causes.length && !tried.length;
}
function facts() {
  const { heading, recorder } = run, cost = recorder ?? heading.recorder, flagged = run.steps.filter((step) => step.flags.length).length;
  parts.facts.replaceChildren(el("dl", {}, fact("Started", when(heading.started_at)), heading.seconds ? fact("Took", duration(heading.seconds)) : "",
    fact("Objective", heading.objective || "—"), fact("Steps", `${run.steps.length}${flagged ? `, ${flagged} to read with care` : ""}`),
    cost ? fact("The recorder's cost", `${number(100 * cost.cpu_share, 2)} % of one CPU, ${bytes(cost.rss_bytes)}${cost.late_ticks ? `, ${counted(cost.late_ticks, "late tick")}` : ""}`) : ""),
    heading.quality.length ? fold("How the run went", list(heading.quality)) : "");
}
function log() {
  parts.logged.hidden = !run.lines.length && run.heading.status !== "running";
  const box = parts.log, bottom = box.scrollHeight - box.scrollTop - box.clientHeight < 30;
  for (const line of run.lines.slice(box.childElementCount))
    box.append(el("li", { class: line.event }, el("time", { datetime: line.at }, new Date(line.at).toLocaleTimeString("en-GB")), el("span", {}, line.words, line.steps ? quiet(` (about ${line.steps} steps)`) : "")));
  if (!run.lines.length) box.replaceChildren();
  if (bottom) box.scrollTop = box.scrollHeight;
}
function table() {
  if (!parts.steps.parentNode.open) return void (parts.steps.parentNode.ontoggle = table);
  const row = (tag, attributes, cells) => el("tr", {}, cells.map((cell) => el(tag, attributes, `${cell}`)));
  const head = ["Step", "State", axis(), "Block", `${run.heading.work} per second`, "p95 in ms", "Errors", "Read with care"];
  const cells = (s) => [s.number, s.treatment, number(s.level), s.block ?? s.purpose, number(s.throughput), s.p95_ms === null ? "" : number(s.p95_ms), s.errors, s.flags.join(", ")];
  parts.steps.replaceChildren(el("table", {}, el("thead", {}, row("th", { scope: "col" }, head)), el("tbody", {}, run.steps.map((step) => row("td", {}, cells(step))))));
}

// --- where to

async function show() {
  const [, id, report] = /^#\/(\d+\/[\w.-]+?)(\/report)?$/.exec(location.hash) ?? [];
  document.body.classList.toggle("framed", Boolean(report));
  if (!id) {
    run = null;
    return listed();
  }
  const asked = location.hash;
  try {
    const opened = await (await ask(`/api/runs/${id}`)).json();
    if (location.hash !== asked) return; // the reader has gone on
    run = opened;
  } catch (error) {
    if (error.message === "locked") throw error;
    if (location.hash !== asked) return;
    run = null;
    return nothing("There is no such run here", button("#/", "All runs"));
  }
  frame();
  if (report) {
    parts.report = el("iframe", { src: run.report, title: `Report of ${run.heading.name}`, sandbox: "allow-scripts allow-downloads" });
    $("where").append(el("span", { class: "far" }, " / report"));
    main.replaceChildren(para("bar", el("a", { href: `#/${id}` }, "Numbers of this run"), " · ", el("a", { href: run.report, target: "_blank", rel: "noopener" }, "Report alone")), parts.report);
  } else paint();
  main.focus();
}
function step(by) {
  const links = [...main.querySelectorAll("a.row")], ids = [...rows.keys()];
  if (links.length) links[Math.min(links.length - 1, Math.max(0, links.indexOf(document.activeElement) + by))].focus();
  else if (run && ids[ids.indexOf(run.id) + by]) location.hash = `#/${ids[ids.indexOf(run.id) + by]}`;
}
function theme() {
  const dark = (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  localStorage.setItem("theme", (document.documentElement.dataset.theme = dark ? "light" : "dark"));
}
if (localStorage.getItem("theme")) document.documentElement.dataset.theme = localStorage.getItem("theme");
const KEYS = {
  j: () => step(1), k: () => step(-1), t: theme, "?": () => $("keys").showModal(),
  u: () => (location.hash = "#/"), r: () => run?.heading.has_report && (location.hash = parts.report ? `#/${run.id}` : `#/${run.id}/report`),
};
const SAME = { ArrowDown: "j", ArrowUp: "k", Escape: "u" };
addEventListener("keydown", (event) => {
  const key = SAME[event.key] ?? event.key;
  if (event.ctrlKey || event.metaKey || event.altKey || $("keys").open || !KEYS[key]) return;
  if (event.key.startsWith("Arrow") && !main.querySelector("a.row")) return; // outside the list they scroll
  event.preventDefault();
  KEYS[key]();
});
$("theme").onclick = theme;
$("help").onclick = KEYS["?"];
addEventListener("hashchange", show);
addEventListener("resize", draw);
setInterval(clock, 250);
load().then(show).then(listen).catch((error) => error.message === "locked" || (linked("wait", "no answer"), setTimeout(() => location.reload(), 3000)));
