// Tables of CSV: every cell is the text that the command writes.
import { element } from "./ask.js";

// parse reads CSV as the command writes it. The last line, its seal, is no row.
export function parse(csv) {
  const rows = [];
  let row = [], cell = "", quoted = false;
  const lines = csv.replace(/^# sealed by [^\n]*\n?/m, "");
  for (let i = 0; i < lines.length; i++) {
    const c = lines[i];
    if (quoted) {
      if (c !== '"') cell += c;
      else if (lines[i + 1] === '"') cell += lines[++i];
      else quoted = false;
    } else if (c === '"') quoted = true;
    else if (c === ",") {
      row.push(cell);
      cell = "";
    } else if (c === "\n") {
      rows.push([...row, cell]);
      row = [];
      cell = "";
    } else cell += c;
  }
  const [keys = [], ...rest] = rows;
  return { keys, rows: rest };
}

export const isNumber = (text) => text !== "" && !Number.isNaN(Number(text));
const varies = (t, k) => t.rows.some((r) => r[k] !== t.rows[0][k]);

// heading writes the name of a column for people.
export function heading(d, key) {
  const c = d.columns.find((c) => c.name === key);
  const unit = c?.unit;
  const name = unit && key.endsWith("_" + unit) ? key.slice(0, -unit.length - 1) : key;
  return name.replaceAll("_", " ") + (unit ? ` (${unit})` : "");
}

// told are the columns that tell a reader something: those that tell rows apart, and what differs.
function told(d, t) {
  return t.keys.map((_, k) => k).filter((k) => !d.origin.includes(t.keys[k]) && (varies(t, k) || t.keys[k] === d.value));
}

// grid makes a table in a box that scrolls.
export function grid(caption, heads, rows) {
  const numbers = heads.map((_, k) => rows.some((r) => isNumber(r[k])) && rows.every((r) => r[k] === "" || isNumber(r[k])));
  const head = element("tr", {}, ...heads.map((h, k) => element("th", { scope: "col", className: numbers[k] ? "number" : "", title: h.help ?? "" }, h.text)));
  const body = element("tbody");
  for (const r of rows) {
    body.append(element("tr", {}, ...r.map((text, k) => k === 0 ? element("th", { scope: "row", className: numbers[k] ? "number" : "" }, text) : element("td", { className: numbers[k] ? "number" : "" }, text))));
  }
  return element("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": caption }, element("table", {}, element("caption", {}, caption), element("thead", {}, head), body));
}

const most = 1000; // rows that a page shows

// table shows CSV: the columns that differ, or all.
export function table(d, caption, csv) {
  const t = parse(csv);
  const help = (key) => d.columns.find((c) => c.name === key)?.help ?? "";
  const place = element("div");
  const id = "all:" + caption;
  const all = element("input", { type: "checkbox", id });
  const show = () => {
    const columns = all.checked || t.rows.length < 1 ? t.keys.map((_, k) => k) : told(d, t);
    const heads = columns.map((k) => ({ text: heading(d, t.keys[k]), help: help(t.keys[k]) }));
    place.replaceChildren(grid(caption, heads, t.rows.slice(0, most).map((r) => columns.map((k) => r[k]))));
    if (t.rows.length > most) place.append(element("p", { className: "note" }, `The first ${most} of ${t.rows.length} rows; the file has all.`));
    const meanings = columns.map((k) => [heading(d, t.keys[k]), help(t.keys[k])]).filter(([, h]) => h);
    place.append(element("details", {}, element("summary", {}, "What the columns mean"),
      element("dl", {}, ...meanings.flatMap(([name, h]) => [element("dt", {}, name), element("dd", {}, h)]))));
  };
  all.addEventListener("change", show);
  show();
  return element("div", {}, place, element("div", { className: "ticks" }, element("label", {}, all, "All columns, also those with one value")));
}

// identity are the columns that tell the points of an experiment apart.
export const identity = (d) => ["profile", ...Object.values(d.cells).map((c) => c.key)];

// point turns a row into the selection of its point.
export function point(d, t, row, selection) {
  const at = (key) => row[t.keys.indexOf(key)];
  const s = { ...selection, view: "timeline", axes: {} };
  delete s.preset;
  for (const a of d.axes) {
    const c = d.cells[a.name];
    const text = c && at(c.key);
    if (text !== undefined && text !== "" && text !== a.default) s.axes[a.name] = text + (c.unit ?? "");
  }
  if (d.devices && at("profile")) s.profiles = [at("profile")];
  return s;
}

// compared puts two runs beside each other in a column: a row for each point that both have.
export function compared(d, a, b, key) {
  const fixed = (t, k) => k < 0 || !varies(t, k);
  const names = identity(d).filter((name) => {
    const i = a.keys.indexOf(name), j = b.keys.indexOf(name);
    return i >= 0 && j >= 0 && !(fixed(a, i) && fixed(b, j)); // two runs may differ in a value of their own
  });
  const place = (t, r) => JSON.stringify(names.map((n) => r[t.keys.indexOf(n)]));
  const others = new Map();
  let twice = 0;
  for (const r of b.rows) {
    if (others.has(place(b, r))) twice++;
    others.set(place(b, r), r);
  }
  const rows = [], seen = new Set();
  let alone = 0;
  for (const r of a.rows) {
    const o = others.get(place(a, r));
    if (seen.has(place(a, r))) twice++;
    seen.add(place(a, r));
    if (!o) {
      alone++;
      continue;
    }
    const x = r[a.keys.indexOf(key)], y = o[b.keys.indexOf(key)];
    const ratio = isNumber(x) && isNumber(y) && Number(x) !== 0 ? (Number(y) / Number(x)).toPrecision(4) : "";
    rows.push([...names.map((n) => r[a.keys.indexOf(n)]), x, y, ratio]);
  }
  return { names, rows, alone, others: b.rows.length - rows.length, twice };
}
