// The form of an experiment, made from what the registry says about it.
import { element, post, Refused } from "./ask.js";

const few = 12; // values that get a box each
const first = 5; // axes that are seen at once

let described; // the experiment of the form
let modules = {}; // by slot

const fields = document.getElementById("fields");
const wrong = document.getElementById("wrong");

// fill makes the fields of an experiment and gives them the values of a selection. changed is called after each change by the user.
export function fill(d, devices, selection, changed) {
  described = d;
  modules = { ...selection.modules };
  document.getElementById("short").textContent = d.short + (d.source ? ` (${d.source})` : "");
  document.getElementById("long").textContent = d.long;
  document.getElementById("manual").hidden = !d.long;
  fields.replaceChildren();
  if (d.presets.length > 0) fields.append(presets(d, selection));
  const axes = d.axes.map((a) => axis(a, selection.axes?.[a.name]));
  fields.append(...axes.slice(0, first));
  if (axes.length > first) fields.append(folded(`${axes.length - first} more parameters`, axes.slice(first), d.axes.slice(first).some((a) => a.name in (selection.axes ?? {}))));
  if (d.devices) fields.append(folded("Device and network", device(d, devices, selection), selection.profiles || selection.set || selection.seed));
  if (d.slots.length > 0) fields.append(folded("Your own handlers", d.slots.map((slot) => slotField(slot, changed)), Object.keys(modules).length > 0, "slots"));
  fields.onchange = changed;
  say();
}

function folded(title, parts, open, id = "") {
  return element("details", { id, open: Boolean(open) }, element("summary", {}, title), ...parts);
}

// A file that is dragged over the page finds the slots open. One that is dropped beside them does not replace the page.
addEventListener("dragover", (e) => {
  e.preventDefault();
  const slots = document.getElementById("slots");
  if (slots) slots.open = document.getElementById("parameters").open = true;
});
addEventListener("drop", (e) => e.preventDefault());

function presets(d, selection) {
  const select = element("select", { id: "preset" }, element("option", { value: "" }, "none"));
  for (const p of d.presets) select.append(element("option", { value: p.name }, `${p.name}: ${p.short}`));
  select.value = selection.preset ?? "";
  return element("div", { className: "field" }, element("label", { htmlFor: "preset" }, "As published"), select,
    element("span", { className: "help" }, "sets the parameters below, except those that you change"));
}

// axis makes the field of an axis: boxes for few values, else a text.
function axis(a, list) {
  if (a.of && a.of.length <= few) {
    const chosen = (list ?? a.default).split(",");
    return ticks(`axis:${a.name}`, a.name, a.help, a.of.map((v) => [v]), chosen);
  }
  const id = `axis:${a.name}`;
  const range = a.of ? `of ${a.of.join(", ")}` : [a.least && `from ${a.least}`, a.most && `to ${a.most}`].filter(Boolean).join(" ");
  const input = element("input", { type: "text", id, value: list ?? a.default, spellcheck: false, "aria-describedby": id + ":help" });
  return element("div", { className: "field" }, element("label", { htmlFor: id }, a.name), input,
    element("span", { className: "help", id: id + ":help" }, range ? `${a.help}; ${range}` : a.help));
}

// ticks makes a group of boxes.
function ticks(id, title, help, values, chosen) {
  const boxes = values.map(([value, hint]) => element("label", {},
    element("input", { type: "checkbox", name: id, value, checked: chosen.includes(value) }), element("span", {}, value, hint ? element("span", { className: "help" }, hint) : "")));
  return element("fieldset", { className: "field", id }, element("legend", {}, title), element("span", { className: "help" }, help), element("div", { className: "ticks" }, ...boxes));
}

function device(d, devices, selection) {
  const set = element("textarea", { id: "set", rows: 2, spellcheck: false, value: (selection.set ?? []).join("\n"), "aria-describedby": "set:help" });
  const seed = element("input", { type: "text", id: "seed", inputMode: "numeric", value: selection.seed ?? "", placeholder: "1" });
  return [
    ticks("profile", "profile", "devices and networks to measure on", devices.map((p) => [p.name, p.description]), selection.profiles ?? d.profiles),
    element("div", { className: "field" }, element("label", { htmlFor: "set" }, "Change values of the device"), set,
      element("span", { className: "help", id: "set:help" }, "one a line, such as hpu.cores=8; a list measures at each")),
    element("div", { className: "field" }, element("label", { htmlFor: "seed" }, "seed"), seed),
  ];
}

// slotField takes a module, by a file that is chosen or dropped.
function slotField(slot, changed) {
  const id = `slot:${slot.name}`;
  const input = element("input", { type: "file", accept: ".wasm", id, "aria-describedby": id + ":help" });
  const now = element("p", { className: "note", role: "status" });
  const back = element("button", { type: "button", hidden: true }, `Run ${slot.library} again`);
  const show = () => {
    const m = modules[slot.name];
    now.textContent = m ? `Runs your ${m.name}.` : `Runs ${slot.library}.`;
    back.hidden = !m;
  };
  const take = async (file) => {
    now.textContent = `Checking ${file.name} …`;
    say();
    const q = new URLSearchParams({ name: file.name, experiment: described.name, slot: slot.name });
    try {
      modules[slot.name] = await post(`/api/modules?${q}`, file);
      show();
      changed();
    } catch (e) {
      show();
      complain(e);
    }
  };
  input.addEventListener("change", (e) => {
    e.stopPropagation();
    if (input.files.length > 0) take(input.files[0]);
    input.value = "";
  });
  back.addEventListener("click", () => {
    delete modules[slot.name];
    show();
    changed();
  });
  const box = element("div", { className: "drop" }, element("label", { htmlFor: id }, `Your module for ${slot.name}`),
    element("span", { className: "help", id: id + ":help" }, `${slot.short}: choose or drop a .wasm file`), input, now, back,
    element("details", {}, element("summary", {}, "What it must do"), element("pre", { className: "line" }, slot.contract)));
  box.addEventListener("dragover", (e) => {
    e.preventDefault();
    box.classList.add("over");
  });
  box.addEventListener("dragleave", () => box.classList.remove("over"));
  box.addEventListener("drop", (e) => {
    e.preventDefault();
    box.classList.remove("over");
    if (e.dataTransfer.files.length > 0) take(e.dataTransfer.files[0]);
  });
  show();
  return element("div", { className: "field" }, box);
}

const ticked = (id) => Array.from(document.getElementsByName(id)).filter((b) => b.checked).map((b) => b.value);
const same = (a, b) => a.length === b.length && a.every((v) => b.includes(v));

// chosen is the selection of the form: only what differs from the defaults, so that its command is short.
export function chosen() {
  const d = described;
  const s = { experiment: d.name, view: "result", axes: {}, modules: { ...modules } };
  const preset = document.getElementById("preset")?.value;
  if (preset) s.preset = preset;
  for (const a of d.axes) {
    const id = `axis:${a.name}`;
    const input = document.getElementById(id);
    if (input.tagName === "INPUT") {
      if (input.value.trim() !== a.default) s.axes[a.name] = input.value.trim();
    } else if (!same(ticked(id), a.default.split(","))) s.axes[a.name] = ticked(id).join(",");
  }
  if (d.devices) {
    if (!same(ticked("profile"), d.profiles)) s.profiles = ticked("profile");
    const set = document.getElementById("set").value.split("\n").map((l) => l.trim()).filter(Boolean);
    if (set.length > 0) s.set = set;
    const seed = document.getElementById("seed").value.trim();
    if (seed) s.seed = seed;
  }
  return s;
}

// say clears the error of the form.
export function say(text = "") {
  wrong.textContent = text;
  for (const e of fields.querySelectorAll("[aria-invalid]")) e.removeAttribute("aria-invalid");
}

// complain shows an error, and marks the field that it is about.
export function complain(error) {
  if (!(error instanceof Refused)) throw error;
  say(error.message);
  const field = error.field && (document.getElementById(`axis:${error.field}`) ?? document.getElementById(error.field));
  if (!field) return;
  for (let d = field.closest("details"); d; d = d.parentElement.closest("details")) d.open = true;
  const input = field.matches("input, select, textarea") ? field : field.querySelector("input");
  input.setAttribute("aria-invalid", "true");
  input.focus();
}
