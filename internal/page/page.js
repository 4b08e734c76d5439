"use strict";
// A table is sorted by the column whose head is pressed: down the second time, as it was the third. Cells without a value stay at the end.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const heads = Array.from(table.tHead.rows[0].cells);
  const key = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.value !== undefined ? Number(cell.dataset.value) : cell.textContent;
  };
  const none = (v) => v === "–" || v === "";
  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), "en", { numeric: true });
  };
  const sort = (column, way) => {
    const order = rows.slice();
    if (way !== 0) {
      order.sort((one, two) => {
        const a = key(one, column), b = key(two, column);
        if (none(a) || none(b)) return Number(none(a)) - Number(none(b));
        return way * compare(a, b);
      });
    }
    body.append(...order);
    heads.forEach((head, i) => {
      if (i === column && way !== 0) head.setAttribute("aria-sort", way > 0 ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    });
  };
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const was = head.getAttribute("aria-sort");
      sort(column, was === "ascending" ? -1 : was === "descending" ? 0 : 1);
    });
  });
}
// Printed is all that can be unfolded.
let closed = [];
addEventListener("beforeprint", () => {
  closed = Array.from(document.querySelectorAll("details:not([open])"));
  for (const d of closed) d.open = true;
});
addEventListener("afterprint", () => {
  for (const d of closed) d.open = false;
});
