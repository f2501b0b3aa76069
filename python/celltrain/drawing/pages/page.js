"use strict";
for (const button of document.querySelectorAll("table.sortable th button")) button.addEventListener("click", () => {
  const head = button.parentElement, body = head.closest("table").tBodies[0], column = head.cellIndex;
  const down = head.getAttribute("aria-sort") === "ascending";
  for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const key = row => { const cell = row.cells[column]; return "key" in cell.dataset ? Number(cell.dataset.key) : cell.textContent; };
  const order = (a, b) => typeof a === "number" && typeof b === "number" ? (isNaN(a) ? 1 : isNaN(b) ? -1 : a - b) : String(a).localeCompare(String(b));
  const rows = [...body.rows].map(row => [key(row), row]);
  rows.sort((a, b) => down ? order(b[0], a[0]) : order(a[0], b[0]));
  body.append(...rows.map(pair => pair[1]));
});
