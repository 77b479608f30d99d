// Elements, numbers in words, and the charts, without a library. Text is only ever text: nothing is parsed as markup.
const SVG = "http://www.w3.org/2000/svg";
const DRAWN = new Set(["svg", "g", "path", "line", "circle", "rect", "text", "title", "polyline"]);

export function el(tag, attributes = {}, ...inside) {
  const made = DRAWN.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value);
  }
  made.append(...inside.flat().filter((each) => each !== null && each !== undefined && each !== ""));
  return made;
}

// A sentence whose `commands` are set as code.
export const sentence = (text) => `${text}`.split("`").map((part, at) => (at % 2 ? el("code", {}, part) : part));

export const number = (value, digits = 3) =>
  Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en") : Number(value.toPrecision(digits)).toLocaleString("en", { maximumFractionDigits: 6 });
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
  const found = new Map();
  for (const step of steps) {
    if (!step.counts || step[key] === null) continue;
    const levels = found.get(step.treatment) ?? found.set(step.treatment, new Map()).get(step.treatment);
    levels.set(step.level, [...(levels.get(step.level) ?? []), step[key]]);
  }
  return [...found].map(([name, levels]) => ({
    name,
    points: [...levels].sort((a, b) => a[0] - b[0]).map(([x, all]) => {
      const point = (curves[name] ?? []).find(([load]) => load === x);
      return { x, y: point?.[key === "throughput" ? 1 : 2] ?? median(all), all };
    }),
  }));
}

const isLog = (values) => Math.min(...values) > 0 && Math.max(...values) / Math.min(...values) >= 8;
function scale(values, from, to) {
  const low = Math.min(...values), high = Math.max(...values), at = isLog(values) ? Math.log : (x) => x;
  if (low === high) return () => (from + to) / 2;
  return (x) => from + ((at(x) - at(low)) / (at(high) - at(low))) * (to - from);
}

function ticks(high) {
  const rough = high / 4, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => each >= rough);
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

// Right of its line, or left of it where there is no room.
const bends = (x, head, load, width) => el("text", x > width - 110 ? { x: x - 5, y: head + 10, "text-anchor": "end" } : { x: x + 5, y: head + 10 }, `bends at ${number(load)}`);

// lines: of series(). colour: class of a treatment. levels: of the study. now: the level in progress. knees: [at, low, high]. log: whether values above 0 are drawn on a logarithmic scale.
export function chart({ lines, colour, levels, now, knees, width, height, axis, what, unit, log }) {
  const known = lines.flatMap((line) => line.points), values = known.flatMap((p) => p.all), logs = log && values.length > 0 && Math.min(...values) > 0, all = [...new Set([...levels, ...known.map((p) => p.x)])].sort((a, b) => a - b);
  const marks = logs ? logTicks(Math.min(...values), Math.max(...values)) : ticks(Math.max(...values, 0) || 1), left = 66, right = 26, bottom = 44, head = 14;
  const x = scale(all.length ? all : [1, 2], left + 16, width - right), up = logs ? Math.log : (v) => v, [low, top] = [up(marks[0]), up(marks.at(-1))];
  const y = (v) => head + (1 - (up(v) - low) / (top - low)) * (height - head - bottom);
  const said = lines.map((l) => `${l.name}: ${l.points.map((p) => `${number(p.x)}: ${number(p.y)}${unit}`).join(", ")}`).join(". ");
  const made = el("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${what} over ${axis}. ${said || "No step has finished yet"}.` });
  for (const t of marks) {
    made.append(el("line", { class: "grid", x1: left, x2: width - right + 12, y1: y(t), y2: y(t) }));
    made.append(el("text", { class: "tick", x: left - 8, y: y(t) + 4, "text-anchor": "end" }, number(t)));
  }
  for (const level of spaced(all, x, (l) => 10 + 7.6 * number(l).length))
    made.append(el("text", { class: level === now ? "tick here" : "tick", x: x(level), y: height - bottom + 20, "text-anchor": "middle" }, number(level)));
  made.append(el("text", { class: "axis", x: (left + width - right) / 2, y: height - 5, "text-anchor": "middle" }, isLog(all) ? `${axis} (log scale)` : axis));
  if (now !== null && all.includes(now)) made.append(el("rect", { class: "band", x: x(now) - 15, y: head, width: 30, height: height - head - bottom, rx: 4 }, el("title", {}, `being measured: ${number(now)}`)));
  for (const [name, knee] of Object.entries(knees)) {
    const at = knee.map((k) => x(Math.min(Math.max(k ?? Infinity, all[0]), all.at(-1))));
    made.append(el("g", { class: `knee ${colour(name)}` }, el("rect", { x: at[1], y: head, width: Math.max(0, at[2] - at[1]), height: height - head - bottom }), el("line", { x1: at[0], x2: at[0], y1: head, y2: height - bottom }), bends(at[0], head, knee[0], width)));
  }
  for (const line of lines) {
    const group = el("g", { class: `series ${colour(line.name)}` });
    for (const p of line.points) for (const v of p.all) group.append(el("circle", { class: "dot", cx: x(p.x), cy: y(v), r: 2.6 }));
    group.append(el("polyline", { points: line.points.map((p) => `${x(p.x)},${y(p.y)}`).join(" ") }));
    for (const p of line.points) group.append(el("circle", { class: "mark", cx: x(p.x), cy: y(p.y), r: 4.5 }, el("title", {}, `${line.name}, ${axis} ${number(p.x)}: ${number(p.y)}${unit}, ${p.all.length} step${p.all.length === 1 ? "" : "s"}`)));
    made.append(group);
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
  const known = minutes.filter((minute) => minute[key] !== null), from = minutes[0].at_s, to = Math.max(minutes.at(-1).at_s, from + 1);
  const marks = ticks(Math.max(...known.map((minute) => minute[key])) || 1), left = 66, right = 14, bottom = 26, head = 8;
  const x = (s) => left + ((Math.min(Math.max(s, from), to) - from) / (to - from)) * (width - left - right), y = (v) => head + (1 - v / marks.at(-1)) * (height - head - bottom);
  const last = known.at(-1)[key], made = el("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${what} over ${duration(to - from)}. Now ${number(last)}${unit}, at most ${number(Math.max(...known.map((m) => m[key])))}${unit}.` });
  for (const t of marks) made.append(el("line", { class: "grid", x1: left, x2: width - right, y1: y(t), y2: y(t) }), el("text", { class: "tick", x: left - 8, y: y(t) + 4, "text-anchor": "end" }, number(t)));
  for (const gap of gaps) if (gap.to_s > from) made.append(el("rect", { class: "gap", x: x(gap.from_s), y: head, width: Math.max(1, x(gap.to_s) - x(gap.from_s)), height: height - head - bottom }, el("title", {}, gap.words || gap.reason)));
  for (const share of [0, 0.5, 1]) made.append(el("text", { class: "tick", x: x(from + share * (to - from)), y: height - 6, "text-anchor": ["start", "middle", "end"][2 * share] }, new Date(1000 * (from + share * (to - from))).toLocaleTimeString("en-GB", { timeStyle: to - from < 600 ? "medium" : "short" })));
  const steps = known.slice(1).map((minute, i) => minute.at_s - known[i].at_s), joined = 3.5 * median(steps.length ? steps : [1]);
  let path = "", before = -Infinity; // what is further apart than its neighbours mostly are is not joined: nothing was seen there
  for (const minute of known) {
    path += `${minute.at_s - before > joined ? "M" : "L"}${x(minute.at_s).toFixed(1)} ${y(minute[key]).toFixed(1)}`;
    before = minute.at_s;
  }
  made.append(el("path", { class: "time", d: path }), el("circle", { class: "last", cx: x(known.at(-1).at_s), cy: y(last), r: 3.5 }));
  for (const one of alarms) if (one.at_s >= from) made.append(el("line", { class: "alarm", x1: x(one.at_s), x2: x(one.at_s), y1: head, y2: height - bottom }, el("title", {}, one.title)));
  return made;
}

export function scatter({ points, bend, width, height, axis, what }) {
  const marks = ticks(Math.max(...points.map((p) => p.y)) || 1), across = ticks(Math.max(...points.map((p) => p.x), bend?.load ?? 0) || 1), left = 66, right = 20, bottom = 44, head = 14;
  const x = (v) => left + (v / across.at(-1)) * (width - left - right), y = (v) => head + (1 - v / marks.at(-1)) * (height - head - bottom);
  const made = el("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${what} over ${axis}, ${points.length} minutes.${bend?.load ? ` Bends at ${number(bend.load)}.` : ""}` });
  for (const t of marks) made.append(el("line", { class: "grid", x1: left, x2: width - right, y1: y(t), y2: y(t) }), el("text", { class: "tick", x: left - 8, y: y(t) + 4, "text-anchor": "end" }, number(t)));
  for (const t of across) made.append(el("text", { class: "tick", x: x(t), y: height - bottom + 20, "text-anchor": "middle" }, number(t)));
  made.append(el("text", { class: "axis", x: (left + width - right) / 2, y: height - 5, "text-anchor": "middle" }, axis));
  if (bend?.load) made.append(el("g", { class: "knee c-a" }, el("line", { x1: x(bend.load), x2: x(bend.load), y1: head, y2: height - bottom }), bends(x(bend.load), head, bend.load, width)));
  const group = el("g", { class: "series c-b" });
  for (const p of points) group.append(el("circle", { class: "dot", cx: x(p.x), cy: y(p.y), r: 3 }));
  made.append(group);
  return made;
}

// How the use of a limit grows over the levels, or goes over time: a line in a box of 64 by 18. Of many points the means.
export function spark(all) {
  const size = Math.ceil(all.length / 60), mean = (some, of) => some.reduce((sum, p) => sum + p[of], 0) / some.length;
  const points = Array.from({ length: Math.ceil(all.length / size) }, (_, i) => all.slice(i * size, (i + 1) * size)).map((some) => ({ x: mean(some, "x"), y: mean(some, "y") }));
  const x = scale(points.map((p) => p.x), 2, 62);
  const line = points.map((p) => `${x(p.x)},${16 - 14 * Math.min(p.y, 1)}`).join(" ");
  return el("svg", { viewBox: "0 0 64 18", class: "spark", "aria-hidden": "true" }, el("line", { class: "grid", x1: 0, x2: 64, y1: 2, y2: 2 }), el("polyline", { points: line }));
}
