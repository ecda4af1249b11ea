"use strict";
// Lets readers sort tables by their headings; numbers are read from the texts.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = table.querySelectorAll("thead th");
  const number = (text) => {
    const found = text.replaceAll(",", "").replaceAll("−", "-").match(/^\[?([+-]?[0-9.]+)/);
    return found ? Number(found[1]) : Infinity;
  };
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const text = (row) => row.cells[column]?.textContent ?? "";
      const compare = (a, b) => {
        const [one, other] = [number(text(a)), number(text(b))];
        return one === other ? text(a).localeCompare(text(b)) : one - other;
      };
      const rows = [...table.tBodies[0].rows].sort((a, b) => (up ? 1 : -1) * compare(a, b));
      table.tBodies[0].append(...rows);
    });
  });
}
