"use strict";
(() => {
  const table = document.querySelector("body > table");
  const groups = Array.from(table.tBodies);
  const search = document.getElementById("search");
  const shown = document.getElementById("shown");
  const heads = Array.from(table.tHead.rows[0].cells);
  const texts = new Map(groups.map((group) => [group, group.textContent.toLowerCase()]));
  let current = groups[0];

  const cell = (group, column) => group.rows[0].cells[column];
  const visible = () => Array.from(table.tBodies).filter((group) => !group.hidden);

  function point(group, focus) {
    if (!group) return;
    if (current) current.rows[0].tabIndex = -1;
    current = group;
    group.rows[0].tabIndex = 0;
    if (focus) group.rows[0].focus();
  }

  function open(group, on) {
    group.rows[1].hidden = !on;
    group.rows[0].setAttribute("aria-expanded", String(on));
  }

  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = Array.from(document.querySelectorAll("fieldset")).map((set) => [
      set.dataset.filter,
      new Set(Array.from(set.querySelectorAll("input:checked"), (box) => box.value)),
    ]);
    let count = 0;
    for (const group of groups) {
      const fits = wanted.every(([key, values]) => values.has(group.dataset[key]));
      group.hidden = !(fits && words.every((word) => texts.get(group).includes(word)));
      if (!group.hidden) count += 1;
    }
    shown.textContent = `${count} of ${groups.length} shown`;
    if (current && current.hidden) point(visible()[0], false);
  }

  function sort(column, button) {
    const head = heads[column];
    const number = "number" in button.dataset;
    const down = head.getAttribute("aria-sort") === (number ? "descending" : "ascending");
    const order = (number ? !down : down) ? "descending" : "ascending";
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const value = (group) => cell(group, column).dataset.sort ?? cell(group, column).textContent;
    const compare = number
      ? (a, b) => Number(value(a)) - Number(value(b))
      : (a, b) => value(a).localeCompare(value(b), "en", { numeric: true });
    table.append(...groups.slice().sort((a, b) => sign * compare(a, b)));
  }

  document.getElementById("filters").addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("filters").addEventListener("input", filter);
  for (const button of table.tHead.querySelectorAll("button")) {
    button.addEventListener("click", () => sort(Number(button.dataset.column), button));
  }
  table.addEventListener("click", (event) => {
    const row = event.target.closest("tbody > tr");
    const group = row && row.parentElement;
    if (!group || group.parentElement !== table || row !== group.rows[0]) return;
    if (String(window.getSelection())) return;
    point(group, true);
    open(group, group.rows[1].hidden);
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target === search;
    if (event.key === "Escape") {
      if (typing) { search.value = ""; filter(); point(current, true); } else if (current) { open(current, false); current.rows[0].focus(); }
      return;
    }
    if (typing) {
      if (event.key === "Enter") point(visible()[0], true);
      return;
    }
    const all = visible();
    const at = all.indexOf(current);
    const inRow = event.target.closest?.("tbody > tr") || event.target === document.body;
    if (event.key === "/") { event.preventDefault(); search.focus(); search.select(); }
    else if (event.key === "j" || (event.key === "ArrowDown" && inRow)) { event.preventDefault(); point(all[Math.min(at + 1, all.length - 1)], true); }
    else if (event.key === "k" || (event.key === "ArrowUp" && inRow)) { event.preventDefault(); point(all[Math.max(at - 1, 0)], true); }
    else if ((event.key === "Enter" || event.key === " ") && current && event.target === current.rows[0]) { event.preventDefault(); open(current, current.rows[1].hidden); }
  });
  filter();
})();
