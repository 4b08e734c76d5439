// The timeline of one point, from the trace that the command writes.
import { element } from "./ask.js";
import { grid } from "./table.js";

const most = 2000; // spans that a picture shows
const svg = (name, attributes = {}, ...children) => {
  const e = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  e.append(...children);
  return e;
};

const colors = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#555555"];

// time writes microseconds of the trace with a fitting unit.
export function time(us) {
  for (const [unit, factor] of [["s", 1e-6], ["ms", 1e-3], ["µs", 1]]) if (Math.abs(us) * factor >= 1) return `${Number((us * factor).toPrecision(4))} ${unit}`;
  return `${Number((us * 1e3).toPrecision(4))} ns`;
}

// spansOf reads a trace: spans in order of time, with the names of their lanes.
function spansOf(trace) {
  const nodes = {}, lanes = {}, spans = [];
  for (const e of trace.traceEvents) {
    if (e.ph === "M" && e.name === "process_name") nodes[e.pid] = e.args.name;
    else if (e.ph === "M" && e.name === "thread_name") lanes[`${e.pid}/${e.tid}`] = e.args.name;
    else if (e.ph === "X") spans.push(e);
  }
  spans.sort((a, b) => a.ts - b.ts);
  for (const s of spans) s.lane = `${nodes[s.pid] ?? s.pid}: ${lanes[`${s.pid}/${s.tid}`] ?? s.tid}`;
  return spans;
}

// timeline draws a trace, and lists it as a table.
export function timeline(trace) {
  const all = spansOf(trace);
  if (all.length === 0) return element("p", {}, "Nothing takes any time at this point.");
  const spans = all.slice(0, most);
  const lanes = [...new Set(spans.map((s) => s.lane))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const names = [...new Set(spans.map((s) => s.name))];
  const end = Math.max(...spans.map((s) => s.ts + s.dur));
  const left = 160, width = 1000, high = 22, top = 24;
  const x = (us) => left + (width - left - 10) * us / end;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${top + high * lanes.length + 4}`, width, class: "lanes", role: "img",
    "aria-label": `Timeline of ${spans.length} spans in ${lanes.length} lanes over ${time(end)}; the table below lists them` });
  for (let i = 0; i <= 5; i++) {
    const at = x(end * i / 5);
    picture.append(svg("line", { x1: at, x2: at, y1: top - 6, y2: top + high * lanes.length, stroke: "#d0d7de" }));
    picture.append(svg("text", { x: at, y: 12, "text-anchor": i === 0 ? "start" : i === 5 ? "end" : "middle", class: "soft" }, time(end * i / 5)));
  }
  lanes.forEach((lane, i) => picture.append(svg("text", { x: 0, y: top + high * i + 15 }, lane.length > 26 ? lane.slice(0, 25) + "…" : lane)));
  for (const s of spans) {
    const w = Math.max(1, x(s.ts + s.dur) - x(s.ts));
    const y = top + high * lanes.indexOf(s.lane);
    picture.append(svg("rect", { x: x(s.ts), y: y + 2, width: w, height: high - 4, fill: colors[names.indexOf(s.name) % colors.length] },
      svg("title", {}, `${s.lane}: ${s.name}, ${time(s.ts)} + ${time(s.dur)}`)));
  }
  const rows = spans.map((s) => [time(s.ts), time(s.dur), s.lane, s.name]);
  const parts = [element("figure", { tabIndex: 0 }, picture)];
  if (all.length > most) parts.push(element("p", { className: "note" }, `The first ${most} of ${all.length} spans; the file has all.`));
  parts.push(grid("What takes time, in order", ["begins", "takes", "where", "what"].map((text) => ({ text })), rows));
  return element("div", {}, ...parts);
}
