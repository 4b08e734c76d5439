// What is chosen and shown lives behind the # of the address: a reload, a second tab and the back button show it again.

const lists = { profile: "profiles", set: "set" };

// read returns the state of the address. Its selection is what the server takes.
export function read() {
  const q = new URLSearchParams(location.hash.slice(1));
  const state = { selection: { experiment: q.get("experiment") ?? "", view: "result", axes: {}, modules: {} }, view: q.get("view") ?? "result", runs: {} };
  for (const [key, value] of q) {
    const [kind, name] = key.split(/:(.*)/s);
    if (kind === "axis") state.selection.axes[name] = value;
    else if (kind === "run") state.runs[name] = value;
    else if (kind === "module") {
      const [id, file] = value.split(/:(.*)/s);
      state.selection.modules[name] = { id, name: file ?? "" };
    } else if (kind in lists) (state.selection[lists[kind]] ??= []).push(value);
    else if (kind === "seed" || kind === "preset") state.selection[kind] = value;
    else if (kind === "with") state.with = value;
    else if (kind === "point") state.point = Math.abs(parseInt(value, 10)) || 0;
  }
  return state;
}

// address writes a state.
export function address(state) {
  const q = new URLSearchParams();
  const s = state.selection;
  q.set("experiment", s.experiment);
  if (s.preset) q.set("preset", s.preset);
  for (const [name, list] of Object.entries(s.axes ?? {})) q.set("axis:" + name, list);
  for (const [key, name] of Object.entries(lists)) for (const one of s[name] ?? []) q.append(key, one);
  if (s.seed) q.set("seed", s.seed);
  for (const [slot, m] of Object.entries(s.modules ?? {})) q.set("module:" + slot, `${m.id}:${m.name}`);
  for (const [view, id] of Object.entries(state.runs)) q.set("run:" + view, id);
  if (state.view !== "result") q.set("view", state.view);
  if (state.with) q.set("with", state.with);
  if (state.point) q.set("point", state.point);
  return "#" + q;
}
