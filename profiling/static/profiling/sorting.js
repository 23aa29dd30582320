// Sorts a table where it stands. Without this file the links in its head do the same on the server.
"use strict";

for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  for (const [at, head] of heads.entries()) {
    head.querySelector("a")?.addEventListener("click", (event) => {
      event.preventDefault();
      const isNumber = head.classList.contains("number");
      const now = head.getAttribute("aria-sort");
      const down = now ? now === "ascending" : isNumber && at > 0;
      const rows = [...table.tBodies[0].rows];
      rows.sort((one, other) => compare(one.cells[at], other.cells[at], isNumber));
      if (down) rows.reverse();
      table.tBodies[0].append(...rows);
      for (const each of heads) each.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
    });
  }
}

function compare(one, other, isNumber) {
  const [a, b] = [one.dataset.key ?? "", other.dataset.key ?? ""];
  // What has no value stays below everything that has one.
  if (isNumber) return (a === "" ? -1 : Number(a)) - (b === "" ? -1 : Number(b));
  return a < b ? -1 : a > b ? 1 : 0;
}
