// The page: an experiment is chosen in the form, and its run is shown beside it.
import { element, json, output, post, Refused, text, unpacked } from "./ask.js";
import { chosen, complain, fill, say } from "./form.js";
import { address, read } from "./state.js";
import { compared, grid, heading, identity, isNumber, parse, point, table } from "./table.js";
import { timeline } from "./timeline.js";

const $ = (id) => document.getElementById(id);
const views = [["result", "Result"], ["breakdown", "Breakdown"], ["timeline", "Timeline"], ["compare", "Compare"]];

let index, state, described;
let turn = 0; // counts what is shown: what comes late for an earlier one is dropped

const narrow = matchMedia("(max-width: 60rem)");
const experiments = new Map();
async function about(name) {
  if (!experiments.has(name)) experiments.set(name, await json(`/api/experiments/${encodeURIComponent(name)}`));
  return experiments.get(name);
}

// go changes the state. A new step is one that the back button undoes.
function go(next, step = true) {
  state = next;
  history[step ? "pushState" : "replaceState"](null, "", address(state));
  return show();
}

// edited keeps what is chosen in the address, without a step.
function edited() {
  state.selection = chosen();
  history.replaceState(null, "", address(state));
  say();
  $("changed").hidden = !state.runs.result;
}

async function load() {
  const now = ++turn;
  const next = read();
  if (!next.selection.experiment) next.selection.experiment = index.groups[0].experiments[0].name;
  let d, unknown = "";
  try {
    d = await about(next.selection.experiment);
  } catch (e) {
    unknown = e.message;
    next.selection = { experiment: index.groups[0].experiments[0].name };
    d = await about(next.selection.experiment);
  }
  if (now !== turn) return;
  [state, described] = [next, d];
  $("changed").hidden = true;
  if (narrow.matches) $("parameters").open = !state.runs.result; // the answer is what is seen first
  $("experiment").value = described.name;
  fill(described, index.devices, state.selection, edited);
  say(unknown);
  await show();
}

// show shows the run of the view, or begins it.
async function show() {
  const now = ++turn;
  const late = () => now !== turn;
  document.title = `${state.selection.experiment} – spinsim`;
  const first = state.runs.result;
  $("progress").replaceChildren();
  $("state").textContent = "";
  try {
    if (!first) {
      $("views").hidden = true;
      $("title").textContent = "No run yet";
      $("view").replaceChildren(element("p", {}, "Run measures what is chosen. The answer comes first, then the picture and the table; every run shows the command that makes the same bytes."));
      return;
    }
    const result = await json(`/api/runs/${first}`);
    if (late()) return;
    const d = await about(result.selection.experiment);
    offer(d);
    let run = await follow(result, late);
    const whole = run;
    if (!late() && whole.state === "done" && state.view === "breakdown") run = await follow(await derived("breakdown", { ...whole.selection, view: "breakdown" }), late);
    if (!late() && whole.state === "done" && state.view === "timeline") run = await follow(await derived("timeline", await spot(d, whole)), late);
    if (late()) return;
    const shown = new Map([["timeline", showTimeline], ["compare", showComparison]]).get(state.view) ?? showResult;
    await (whole.state === "done" ? shown : showResult)(d, run, whole, late);
  } catch (e) {
    if (!(e instanceof Refused)) throw e;
    if (late()) return;
    $("title").textContent = "This cannot be shown";
    $("view").replaceChildren(element("p", { className: "wrong", role: "alert" }, e.message));
  }
}

// offer lists the views, as links: each is an address.
function offer(d) {
  const nav = $("views");
  nav.hidden = false;
  nav.replaceChildren(...views.filter(([v]) => !(v === "breakdown" && d.broken) && !(v === "timeline" && !d.traced)).map(([v, name]) => {
    const a = element("a", { href: address({ ...state, view: v }) }, name);
    if (v === state.view) a.setAttribute("aria-current", "page");
    return a;
  }));
}

// derived returns the run of another view of the same selection. It begins once: what was cancelled stays so.
async function derived(view, selection) {
  if (state.runs[view]) {
    try {
      return await json(`/api/runs/${state.runs[view]}`);
    } catch { /* begun anew below */ }
  }
  const run = await post("/api/runs", JSON.stringify(selection));
  state.runs[view] = run.id;
  history.replaceState(null, "", address(state));
  return run;
}

// spot is the selection of the point whose timeline is shown.
async function spot(d, result) {
  const t = parse(await text(output(result, "table.csv")));
  return point(d, t, t.rows[Math.min(state.point ?? 0, t.rows.length - 1)], result.selection);
}

// follow shows how far a run is until it is over, and returns it then.
async function follow(run, late) {
  const words = { waiting: "Waits for another run to end.", running: "Measuring" };
  while (run.state in words) {
    const some = run.state === "running" && run.points > 0;
    const said = some ? `${words.running}: ${run.measured} of ${run.points} points.` : words[run.state];
    if ($("state").textContent !== said) $("state").textContent = said;
    if ($("progress").children.length === 0) {
      $("title").textContent = run.selection.experiment;
      $("view").replaceChildren(lineOf(run));
      const bar = element("progress", { "aria-label": "points measured" });
      const stop = element("button", { type: "button", id: "cancel" }, "Cancel");
      stop.addEventListener("click", () => post(`/api/runs/${run.id}/cancel`).catch(complain));
      $("progress").replaceChildren(element("div", { className: "row" }, stop), bar);
    }
    if (some) Object.assign($("progress").querySelector("progress"), { max: run.points, value: run.measured });
    run = await json(`/api/runs/${run.id}?wait`);
    if (late()) return run;
  }
  $("progress").replaceChildren();
  const refused = run.status === 2 ? "The command refuses this (status 2)." : `The command ended with status ${run.status}.`;
  $("state").textContent = { done: "", failed: refused, cancelled: "Cancelled. Run goes on with the points that were measured." }[run.state];
  return run;
}

// lineOf shows the command of a run.
function lineOf(run) {
  const copy = element("button", { type: "button" }, "Copy");
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(run.command);
    copy.textContent = "Copied";
  });
  return element("div", {}, element("h3", {}, "The same in a terminal"), element("div", { className: "command" }, element("pre", { className: "line", tabIndex: 0 }, element("code", {}, run.command)), copy));
}

const traceFile = "trace.json.gz";
const longest = 64e6; // characters of a timeline
const kinds = { "table.csv": "CSV", "table.txt": "text", "result.json": "JSON", "plot.svg": "picture", "report.html": "report", [traceFile]: "timeline for ui.perfetto.dev" };

// files links what a run has written.
function files(run) {
  const links = run.outputs.map((name) => element("a", { href: output(run, name) + (name === "report.html" ? "" : "?save"), target: name === "report.html" ? "_blank" : "" }, kinds[name] ?? name));
  if (links.length === 0) return "";
  return element("p", { className: "row" }, "Files: ", ...links);
}

function picture(run, alt) {
  return element("figure", { tabIndex: 0, className: "lone" }, element("img", { src: output(run, "plot.svg"), alt }));
}

const trouble = (run) => run.message ? element("pre", { className: "wrong line", tabIndex: 0 }, run.message) : "";

async function showResult(d, run, result, late) {
  const parts = [];
  let answer = [];
  if (run.outputs.includes("result.json")) answer = JSON.parse(await text(output(run, "result.json"))).answer ?? [];
  for (const line of answer) parts.push(element("p", { className: "answer" }, line));
  parts.push(trouble(run));
  if (run.outputs.includes("plot.svg")) parts.push(picture(run, `${d.short}; the table below has the numbers`));
  parts.push(lineOf(run), files(run));
  const tables = ["table.csv", ...d.tables.map((name) => name + ".csv")].filter((name) => run.outputs.includes(name));
  for (const name of tables) parts.push(table(d, name === "table.csv" ? d.short : name.slice(0, -4), await text(output(run, name))));
  if (run.outputs.includes("table.txt")) {
    const printed = element("details", {}, element("summary", {}, "As the command prints it"), element("pre", { tabIndex: 0 }, await text(output(run, "table.txt"))));
    parts.push(printed);
  }
  if (late()) return;
  $("title").textContent = run.selection.experiment;
  $("view").replaceChildren(...parts);
}

async function showTimeline(d, run, result, late) {
  if (!result.outputs.includes("table.csv")) return showResult(d, run, result, late);
  const t = parse(await text(output(result, "table.csv")));
  const names = identity(d).map((name) => t.keys.indexOf(name)).filter((k) => k >= 0 && t.rows.some((r) => r[k] !== t.rows[0][k]));
  const select = element("select", { id: "point" });
  t.rows.forEach((r, i) => select.append(element("option", { value: i }, names.map((k) => `${heading(d, t.keys[k])} ${r[k]}`).join(", ") || "the only one")));
  select.value = state.point ?? 0;
  select.addEventListener("change", () => {
    const runs = { ...state.runs };
    delete runs.timeline;
    go({ ...state, runs, point: Number(select.value) });
  });
  const parts = [element("div", { className: "row" }, element("label", { htmlFor: "point" }, "Point"), select), trouble(run)];
  parts.push(lineOf(run), files(run));
  if (run.outputs.includes(traceFile)) {
    const trace = await unpacked(output(run, traceFile), longest);
    parts.splice(1, 0, trace === null ? element("p", {}, `More than ${longest / 1e6} MB of events: too many for this page. The file has them.`) : timeline(JSON.parse(trace)));
  }
  if (late()) return;
  $("title").textContent = `${run.selection.experiment}: timeline of a point`;
  $("view").replaceChildren(...parts);
}

async function showComparison(d, run, result, late) {
  const others = (await json("/api/runs")).filter((o) => o.selection.experiment === d.name && o.selection.view === "result" && o.state === "done" && o.id !== run.id);
  const select = element("select", { id: "with" }, element("option", { value: "" }, others.length > 0 ? "choose a run" : "no other run of this experiment yet"),
    ...others.map((o) => element("option", { value: o.id }, o.command)));
  select.value = others.some((o) => o.id === state.with) ? state.with : "";
  select.addEventListener("change", () => go({ ...state, with: select.value }));
  const parts = [element("div", { className: "field" }, element("label", { htmlFor: "with" }, "Compare with"), select)];
  const other = others.find((o) => o.id === select.value);
  if (other && run.outputs.includes("table.csv")) {
    const [a, b] = [parse(await text(output(run, "table.csv"))), parse(await text(output(other, "table.csv")))];
    const [answer, both] = beside(d, a, b);
    parts.push(answer, element("dl", {}, element("dt", {}, "A"), element("dd", {}, run.command), element("dt", {}, "B"), element("dd", {}, other.command)));
    const pictures = [[run, "A"], [other, "B"]].filter(([r]) => r.outputs.includes("plot.svg"));
    if (pictures.length > 0) parts.push(element("div", { className: "pair" }, ...pictures.map(([r, name]) => element("figure", { tabIndex: 0 }, element("figcaption", {}, name), element("img", { src: output(r, "plot.svg"), alt: `${name}: ${d.short}; the table below has the numbers` })))));
    parts.push(both);
  } else if (state.with && !other) parts.push(element("p", { className: "wrong" }, "The other run is not there any more."));
  if (late()) return;
  $("title").textContent = `${d.name}: two runs`;
  $("view").replaceChildren(...parts);
}

// beside is the table of two runs, in a column that can be chosen.
function beside(d, a, b) {
  const measured = a.keys.filter((key, k) => b.keys.includes(key) && !d.origin.includes(key) && !identity(d).includes(key) && a.rows.some((r) => isNumber(r[k])));
  const select = element("select", { id: "column" }, ...measured.map((key) => element("option", { value: key }, heading(d, key))));
  if (measured.includes(d.value)) select.value = d.value;
  const place = element("div");
  const answer = element("p", { className: "answer", role: "status" });
  const fillIn = () => {
    const c = compared(d, a, b, select.value);
    const unit = heading(d, select.value);
    const ratios = c.rows.map((r) => Number(r.at(-1))).filter((x) => x > 0);
    const [least, greatest] = [Math.min(...ratios), Math.max(...ratios)];
    answer.textContent = ratios.length === 0 ? "No point has numbers of both." : `${heading(d, select.value)}: B / A is ${[...new Set([least, greatest])].map((x) => x.toPrecision(4)).join(" to ")}.`;
    const heads = [...c.names.map((n) => heading(d, n)), `A: ${unit}`, `B: ${unit}`, "B / A"].map((text) => ({ text }));
    place.replaceChildren(grid(`${unit} of both`, heads, c.rows));
    const notes = [[c.alone, "rows of A have no partner in B"], [c.others, "rows of B have none in A"], [c.twice, "rows stand for the same point; the last counts"]].filter(([n]) => n > 0);
    if (notes.length > 0) place.append(element("p", { className: "note" }, notes.map(([n, what]) => `${n} ${what}`).join(", ") + "."));
  };
  select.addEventListener("change", fillIn);
  fillIn();
  return [answer, element("div", {}, element("div", { className: "row" }, element("label", { htmlFor: "column" }, "Column"), select), place)];
}

$("form").addEventListener("submit", async (e) => {
  e.preventDefault();
  say();
  const selection = chosen();
  try {
    const run = await post("/api/runs", JSON.stringify(selection));
    if (narrow.matches) $("parameters").open = false;
    $("changed").hidden = true;
    const next = { selection, view: state.view, runs: { result: run.id }, with: state.with };
    const shown = go(next, address({ ...next, view: "result" }) !== address({ ...state, view: "result" }));
    $("shown").focus();
    await shown;
  } catch (error) {
    complain(error);
  }
});

$("experiment").addEventListener("change", async () => {
  history.pushState(null, "", address({ selection: { experiment: $("experiment").value }, view: "result", runs: {} }));
  await load();
});

addEventListener("popstate", load);

document.querySelector(".skip").addEventListener("click", (e) => {
  e.preventDefault(); // what stands behind the # is the state
  $("shown").focus();
});

index = await json("/api/index");
for (const g of index.groups) $("experiment").append(element("optgroup", { label: g.title }, ...g.experiments.map((e) => element("option", { value: e.name }, `${e.name}: ${e.short}`))));
$("build").textContent = `${index.build}. Two runs at once, a program of a run ends after ${index.longest}.`;
await load();
