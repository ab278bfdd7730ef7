// Phase maps: where a claim holds over one or two parameters. A click on a cell opens its run.

import { get } from "./api.js";
import { fill, h, number, shown, svg } from "./dom.js";
import { MARKS, counts, kind } from "./parts.js";

function cellButton(cell, axes) {
  if (!cell) return h("span", { class: "cell empty", title: "not visited" }, "·");
  const where = axes.map((axis) => `${axis} = ${shown(cell.at[axis])}`).join(", ");
  const words = `${where}: ${cell.verdict}${cell.estimate === null ? "" : `, ${number(cell.estimate)} [${number(cell.low)}, ${number(cell.high)}]`}${cell.reason ? `; ${cell.reason}` : ""}`;
  const inside = [h("span", { "aria-hidden": "true" }, MARKS[cell.verdict]), cell.estimate === null ? null : h("small", {}, number(cell.estimate))];
  return cell.run ? h("a", { class: `cell ${kind(cell.verdict)}`, href: `#/run/${cell.run}`, title: words, "aria-label": words }, inside)
    : h("span", { class: `cell ${kind(cell.verdict)}`, title: words }, inside);
}

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

function boundary(map, columns, rows) {
  if (!map.segments.length) return null;
  const drawn = svg("svg", { class: "boundary", viewBox: `0 0 ${columns} ${rows}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  // Places of the axes are counted from the middle of the first cell; rows go upwards. Along one axis it is a place.
  const alone = Object.keys(map.axes).length === 1;
  for (const [x, y, x2, y2] of map.segments)
    drawn.append(svg("line", { x1: x + 0.5, x2: x2 + 0.5, y1: alone ? 0 : rows - y - 0.5, y2: alone ? 1 : rows - y2 - 0.5, "vector-effect": "non-scaling-stroke" }));
  return drawn;
}

function grid(map) {
  const axes = Object.keys(map.axes), [across, up] = axes;
  const columns = map.axes[across], rows = up ? [...map.axes[up]].reverse() : [null];
  const find = (x, y) => map.cells.find((cell) => same(cell.at[across], x) && (y === null || same(cell.at[up], y)));
  const cells = h("div", { class: "cells" }, rows.map((y) => columns.map((x) => cellButton(find(x, y), axes))), boundary(map, columns.length, rows.length));
  cells.style.gridTemplateColumns = `repeat(${columns.length}, minmax(3.4rem, 1fr))`;
  const ticks = h("div", { class: "ticks" }, columns.map((x) => h("span", {}, shown(x))));
  ticks.style.gridTemplateColumns = cells.style.gridTemplateColumns;
  return h("div", { class: "wide" }, h("div", { class: "map" },
    h("div", { class: "side-axis" }, rows.map((y) => h("span", {}, y === null ? "" : shown(y)))), cells, h("span", { class: "axis-name" }, up || ""), ticks, h("p", { class: "across" }, across)));
}

export async function show(root) {
  document.title = "Maps · Assay";
  const maps = await get("/api/maps");
  fill(root,
    h("header", { class: "top" }, h("p", { class: "kicker" }, "Phase maps"), h("h1", {}, "Where does a claim hold?"), h("p", { class: "question" }, "Each cell is a stored run; a click opens it. The line is the boundary that the theory predicts.")),
    maps.length ? maps.map((map) => h("section", { class: "close" },
      h("h2", {}, `${map.study} ${map.claim}`), h("p", { class: "how" }, map.statement), h("p", {}, counts(map.counts)), grid(map),
      map.boundary ? h("p", { class: "facts" }, `Predicted: ${map.boundary} ${map.agreement === null ? "" : `On the predicted side: ${Math.round(100 * map.agreement)} % of ${map.compared} cells.`}`) : null))
      : h("section", { class: "close" }, h("p", {}, "No map is stored yet. A sweep makes one:"), h("pre", {}, "assay sweep label-granularity --claim P1 --vary subclasses=2,4,8 --vary distractors=1,2,4")));
}
