// Elements, numbers in words, and the charts, without a library. Text is only ever text: nothing is parsed as markup.
const SVG = "http://www.w3.org/2000/svg";
const DRAWN = new Set(["svg", "g", "path", "line", "circle", "rect", "text", "title", "polyline"]);

export function el(tag, attributes = {}, ...inside) {
  const made = DRAWN.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value != null) made.setAttribute(name, value);
  made.append(...inside.flat(Infinity).filter((part) => part != null && part !== ""));
  return made;
}
export const para = (kind, ...inside) => el("p", { class: kind }, inside);
export const quiet = (...inside) => el("span", { class: "quiet" }, inside);
export const list = (items, attributes) => el("ul", attributes, items?.map((item) => el("li", {}, item)));
export const section = (title, ...inside) => el("section", {}, el("h2", {}, title), inside);
export const fold = (title, ...inside) => el("details", {}, el("summary", {}, title), inside);
export const figure = (what, drawing) => el("figure", {}, el("figcaption", {}, what), drawing);

export const fact = (name, ...inside) => el("div", {}, el("dt", {}, name), el("dd", {}, inside));
const STATUS = { running: "in progress", watching: "watching", finished: "finished", stopped: "stopped early", ended: "ended", unreadable: "not readable" };
export const pill = (status, watch) => el("span", { class: `pill ${status}` }, watch && status === "stopped" ? "not watching" : STATUS[status]);

// A sentence whose `commands` are set as code.
export const sentence = (text) => `${text}`.split("`").map((part, at) => (at % 2 ? el("code", {}, part) : part));

export const number = (value, digits = 3) =>
  Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en") : Number(value.toPrecision(digits)).toLocaleString("en", { maximumFractionDigits: 6 });
export const counted = (count, what, more = `${what}s`) => `${count} ${count === 1 ? what : more}`;
export const bytes = (value) => (value >= 2 ** 30 ? `${number(value / 2 ** 30)}\u00a0GiB` : `${number(value / 2 ** 20)}\u00a0MiB`);
export function duration(seconds) {
  const whole = Math.max(0, Math.round(seconds)), hours = Math.floor(whole / 3600), minutes = Math.floor(whole / 60) % 60;
  if (hours) return `${hours} h ${minutes} min`;
  return minutes ? `${minutes} min${whole % 60 ? ` ${whole % 60} s` : ""}` : `${whole} s`;
}
const median = (values) => {
  const sorted = [...values].sort((a, b) => a - b), half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
};

// The steps that count, as series by treatment: at each level all values and, once a run is concluded, the point of its
// curve; before that their median.
export function series(steps, key, curves = {}) {
  const treatments = new Map();
  for (const { treatment, level, counts, [key]: value } of steps) {
    if (!counts || value === null) continue;
    const levels = treatments.get(treatment) ?? new Map();
    treatments.set(treatment, levels.set(level, [...(levels.get(level) ?? []), value]));
  }
  return [...treatments].map(([name, levels]) => ({
    name,
    points: [...levels].sort((a, b) => a[0] - b[0]).map(([x, all]) => {
      const point = (curves[name] ?? []).find(([load]) => load === x);
      return { x, y: point?.[key === "throughput" ? 1 : 2] ?? median(all), all };
    }),
  }));
}

const LEFT = 66;
const isLog = (values) => Math.min(...values) > 0 && Math.max(...values) / Math.min(...values) >= 8;
function scale(values, from, to) {
  const low = Math.min(...values), high = Math.max(...values), at = isLog(values) ? Math.log : (x) => x;
  if (low === high) return () => (from + to) / 2;
  return (x) => from + ((at(x) - at(low)) / (at(high) - at(low))) * (to - from);
}

function ticks(high) {
  const rough = high / 4, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((digit) => digit * power).find((size) => size >= rough);
  return Array.from({ length: Math.ceil(high / step - 1e-9) + 1 }, (_, i) => i * step);
}

// 1, 2, 5, 10, ... around all values; the powers of ten alone where these would be too many.
function logTicks(low, high) {
  const powers = Array.from({ length: Math.ceil(Math.log10(high)) - Math.floor(Math.log10(low)) + 3 }, (_, i) => Math.floor(Math.log10(low)) - 1 + i);
  const around = (digits) => {
    const all = powers.flatMap((power) => digits.map((digit) => digit * 10 ** power));
    return all.filter((mark, i) => (all[i + 1] ?? Infinity) >= low && (all[i - 1] ?? 0) <= high);
  };
  const fine = around([1, 2, 5]);
  return fine.length > 8 ? around([1]) : fine;
}

// Labels that are too close to the one before are left out.
function spaced(levels, x, gap) {
  let last = -Infinity;
  return levels.filter((level) => x(level) - last >= gap(level) && ((last = x(level)), true));
}

// The empty frame of a chart: a line across at each mark, with its number. axis: what goes to the right. y: where a value is.
function framed({ marks, up = (v) => v, width, height, head, right, bottom, beyond = 0, label, axis = "" }) {
  const tall = height - head - bottom, [low, top] = [up(marks[0]), up(marks.at(-1))], y = (v) => head + (1 - (up(v) - low) / (top - low)) * tall;
  const made = el("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  for (const t of marks) made.append(el("line", { class: "grid", x1: LEFT, x2: width - right + beyond, y1: y(t), y2: y(t) }), el("text", { class: "tick", x: LEFT - 8, y: y(t) + 4, "text-anchor": "end" }, number(t)));
  if (axis) made.append(el("text", { class: "axis", x: (LEFT + width - right) / 2, y: height - 5, "text-anchor": "middle" }, axis));
  const tick = (x, words, others = {}) => made.append(el("text", { class: "tick", x, y: height - bottom + 20, "text-anchor": "middle", ...others }, words));
  const down = (x, others = {}, words = "") => el("line", { ...others, x1: x, x2: x, y1: head, y2: height - bottom }, words && el("title", {}, words));
  const box = (x, wide, others = {}, words = "") => el("rect", { ...others, x, y: head, width: wide, height: tall }, words && el("title", {}, words));
  // Its words are right of its line, or left of it where there is no room.
  const knee = (kind, x, load, ...before) => made.append(el("g", { class: `knee ${kind}` }, before, down(x), el("text", x > width - 110 ? { x: x - 5, y: head + 10, "text-anchor": "end" } : { x: x + 5, y: head + 10 }, `bends at ${number(load)}`)));
  return { made, y, tick, down, box, knee };
}
const dots = (points, x, y, r) => points.map((p) => el("circle", { class: "dot", cx: x(p.x), cy: y(p.y), r }));

// lines: of series(). colour: class of a treatment. levels: of the study. now: the level in progress. knees: [at, low, high]. log: whether values above 0 are drawn on a logarithmic scale.
export function chart({ lines, colour, levels, now, knees, width, height, axis, what, unit, log }) {
  const known = lines.flatMap((line) => line.points), values = known.flatMap((p) => p.all), logs = log && values.length > 0 && Math.min(...values) > 0, all = [...new Set([...levels, ...known.map((p) => p.x)])].sort((a, b) => a - b);
  const marks = logs ? logTicks(Math.min(...values), Math.max(...values)) : ticks(Math.max(...values, 0) || 1), right = 26;
  const said = lines.map((l) => `${l.name}: ${l.points.map((p) => `${number(p.x)}: ${number(p.y)}${unit}`).join(", ")}`).join(". ");
  const x = scale(all.length ? all : [1, 2], LEFT + 16, width - right);
  const { made, y, tick, box, knee } = framed({ marks, up: logs ? Math.log : undefined, width, height, head: 14, right, bottom: 44, beyond: 12, label: `${what} over ${axis}. ${said || "No step has finished yet"}.`, axis: isLog(all) ? `${axis} (log scale)` : axis });
  for (const level of spaced(all, x, (l) => 10 + 7.6 * number(l).length)) tick(x(level), number(level), { class: level === now ? "tick here" : "tick" });
  if (now !== null && all.includes(now)) made.append(box(x(now) - 15, 30, { class: "band", rx: 4 }, `being measured: ${number(now)}`));
  for (const [name, ends] of Object.entries(knees)) {
    const [at, low, high] = ends.map((end) => x(Math.min(Math.max(end ?? Infinity, all[0]), all.at(-1))));
    knee(colour(name), at, ends[0], box(low, Math.max(0, high - low)));
  }
  for (const line of lines) {
    const marked = line.points.map((p) => el("circle", { class: "mark", cx: x(p.x), cy: y(p.y), r: 4.5 }, el("title", {}, `${line.name}, ${axis} ${number(p.x)}: ${number(p.y)}${unit}, ${counted(p.all.length, "step")}`)));
    made.append(el("g", { class: `series ${colour(line.name)}` }, line.points.flatMap((p) => dots(p.all.map((v) => ({ x: p.x, y: v })), x, y, 2.6)), el("polyline", { points: line.points.map((p) => `${x(p.x)},${y(p.y)}`).join(" ") }), marked));
  }
  let above = -Infinity; // of two names at one height the lower one moves down
  for (const { name, points } of [...lines].sort((a, b) => b.points.at(-1).y - a.points.at(-1).y)) {
    above = Math.max(y(points.at(-1).y) + 4, above + 13);
    made.append(el("g", { class: `series ${colour(name)}` }, el("text", { x: x(points.at(-1).x) + 9, y: above }, name)));
  }
  return made;
}

// One value of a watch over its last day. gaps: shaded; alarms: lines from top to bottom.
export function timeline({ minutes, key, gaps, alarms, width, height, what, unit }) {
  const known = minutes.filter((minute) => minute[key] !== null), from = minutes[0].at_s, to = Math.max(minutes.at(-1).at_s, from + 1), right = 14;
  const x = (s) => LEFT + ((Math.min(Math.max(s, from), to) - from) / (to - from)) * (width - LEFT - right), last = known.at(-1)[key], most = Math.max(...known.map((minute) => minute[key]));
  const { made, y, tick, down, box } = framed({ marks: ticks(most || 1), width, height, head: 8, right, bottom: 26, label: `${what} over ${duration(to - from)}. Now ${number(last)}${unit}, at most ${number(most)}${unit}.` });
  for (const gap of gaps) if (gap.to_s > from) made.append(box(x(gap.from_s), Math.max(1, x(gap.to_s) - x(gap.from_s)), { class: "gap" }, gap.words || gap.reason));
  for (const share of [0, 0.5, 1]) tick(x(from + share * (to - from)), new Date(1000 * (from + share * (to - from))).toLocaleTimeString("en-GB", { timeStyle: to - from < 600 ? "medium" : "short" }), { "text-anchor": ["start", "middle", "end"][2 * share] });
  const steps = known.slice(1).map((minute, i) => minute.at_s - known[i].at_s), joined = 3.5 * median(steps.length ? steps : [1]);
  let path = "", before = -Infinity; // what is further apart than its neighbours mostly are is not joined: nothing was seen there
  for (const minute of known) {
    path += `${minute.at_s - before > joined ? "M" : "L"}${x(minute.at_s).toFixed(1)} ${y(minute[key]).toFixed(1)}`;
    before = minute.at_s;
  }
  made.append(el("path", { class: "time", d: path }), el("circle", { class: "last", cx: x(known.at(-1).at_s), cy: y(last), r: 3.5 }));
  for (const { at_s, title } of alarms) if (at_s >= from) made.append(down(x(at_s), { class: "alarm" }, title));
  return made;
}

export function scatter({ points, bend, width, height, axis, what }) {
  const across = ticks(Math.max(...points.map((p) => p.x), bend?.load ?? 0) || 1), right = 20, x = (v) => LEFT + (v / across.at(-1)) * (width - LEFT - right);
  const { made, y, tick, knee } = framed({ marks: ticks(Math.max(...points.map((p) => p.y)) || 1), width, height, head: 14, right, bottom: 44, label: `${what} over ${axis}, ${points.length} minutes.${bend?.load ? ` Bends at ${number(bend.load)}.` : ""}`, axis });
  for (const t of across) tick(x(t), number(t));
  if (bend?.load) knee("c-a", x(bend.load), bend.load);
  made.append(el("g", { class: "series c-b" }, dots(points, x, y, 3)));
  return made;
}

// How the use of a limit grows over the levels, or goes over time: a line in a box of 64 by 18. Of many points the means.
function spark(all) {
  const size = Math.ceil(all.length / 60), mean = (some, of) => some.reduce((sum, p) => sum + p[of], 0) / some.length;
  const points = Array.from({ length: Math.ceil(all.length / size) }, (_, i) => all.slice(i * size, (i + 1) * size)).map((some) => ({ x: mean(some, "x"), y: mean(some, "y") }));
  const x = scale(points.map((p) => p.x), 2, 62);
  const line = points.map((p) => `${x(p.x)},${16 - 14 * Math.min(p.y, 1)}`).join(" ");
  return el("svg", { viewBox: "0 0 64 18", class: "spark", "aria-hidden": "true" }, el("line", { class: "grid", x1: 0, x2: 64, y1: 2, y2: 2 }), el("polyline", { points: line }));
}

// A limit in use, drawn again in its item where it has one: its bar, and how its use went.
export function limit(item, id, title, { share, reached, words, over }) {
  item ??= el("li", { "data-id": id }, el("span", { class: "name" }, title), el("span", { class: "use" }), el("span", { class: "meter", role: "meter", "aria-valuemin": 0, "aria-valuemax": 100, "aria-label": title }, el("i")), el("span", { class: "over" }));
  const filled = 100 * Math.min(1, share);
  item.className = reached ? "reached" : share >= 0.8 ? "near" : "";
  item.querySelector(".use").textContent = words;
  item.querySelector(".meter").setAttribute("aria-valuenow", Math.round(filled));
  item.querySelector("i").style.width = `${filled}%`;
  item.querySelector(".over").replaceChildren(over.length > 1 ? spark(over) : "");
  return item;
}
