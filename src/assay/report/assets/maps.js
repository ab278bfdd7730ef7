// A click on a cell of a phase map shows its numbers and the way to its run, which the table below the map has.
(function () {
  "use strict";

  function show(map, row) {
    const picked = map.querySelector(".picked");
    const part = (name) => row.querySelector(name);
    const words = document.createElement("p");
    const where = document.createElement("b");
    where.textContent = row.dataset.cell;
    words.append(where, " ", part(".badge").cloneNode(true), " ", part(".measure").textContent);
    if (part(".side")?.textContent) words.append(` · predicted: ${part(".side").textContent}`);
    const go = document.createElement("p");
    go.append(...[...part(".go").childNodes].map((each) => each.cloneNode(true)));
    picked.replaceChildren(words, go);
    picked.hidden = false;
    for (const each of map.querySelectorAll("tr[data-cell]")) each.classList.toggle("chosen", each === row);
  }

  for (const map of document.querySelectorAll(".map")) {
    const rows = new Map([...map.querySelectorAll("tr[data-cell]")].map((row) => [row.dataset.cell, row]));
    map.addEventListener("assay:picked", (event) => {
      const row = rows.get(event.detail.cell);
      if (row) show(map, row);
    });
  }
})();
