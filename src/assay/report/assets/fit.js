// A chart for the room and the light it has: parts below one another where the page is narrow, colours for a dark page.
window.assayFit = (function () {
  "use strict";
  const NARROW = 600;
  const DARK = {
    "#1c2430": "#e8ecf1", "#4d5866": "#aab5c2", "#a3adba": "#56616f", "#e9edf1": "#262e38",
    "black": "#e8ecf1", "#000": "#e8ecf1", "#000000": "#e8ecf1", "#333": "#d3dae2", "#444": "#c3ccd6", "#555": "#b3bdc9",
    "#777": "#98a3b0", "#888": "#8d98a6", "#bbb": "#56616f", "#ccc": "#4a5462", "lightgrey": "#4a5462", "lightgray": "#4a5462",
    "white": "#12161c", "#fff": "#12161c",
    "#0072b2": "#4fa8e6", "#d55e00": "#f0853c", "#009e73": "#2fc79a", "#cc79a7": "#dd93bb", "#5b6472": "#9aa6b4",
    "#7a4fb5": "#ab8de2", "#3366aa": "#74a2e6", "#c0392b": "#ec7163", "crimson": "#f0647f", "#b2182b": "#ee6a72",
    "#f7e3c8": "#3b2e1c", "#e8b4ae": "#5a3a37",
  };

  function recoloured(part) {
    if (typeof part === "string") return DARK[part.toLowerCase()] || part;
    if (Array.isArray(part)) return part.map(recoloured);
    // A colour with a condition, such as the number in a cell of a heat map, goes with what lies under it.
    if (!part || typeof part !== "object" || part.condition) return part;
    return Object.fromEntries(Object.entries(part).map(([key, value]) => [key, key === "datasets" ? value : recoloured(value)]));
  }

  function stacked(part, room) {
    if (Array.isArray(part)) return part.map((each) => stacked(each, room));
    if (!part || typeof part !== "object") return part;
    const made = {};
    for (const [key, value] of Object.entries(part)) made[key] = key === "datasets" || key === "config" ? value : stacked(value, room);
    if (Array.isArray(made.hconcat)) {
      made.vconcat = made.hconcat;
      delete made.hconcat;
    }
    if (Array.isArray(made.concat)) made.columns = 1;
    if (made.facet && made.facet.field) made.columns = 1;
    const encoding = made.encoding;
    if (encoding && encoding.column && !encoding.row) {
      encoding.facet = { ...encoding.column, columns: 1 };
      delete encoding.column;
    } else if (encoding && encoding.facet) encoding.facet.columns = 1;
    if (typeof made.width === "number" && made.width > room) made.width = room;
    return made;
  }

  function fitted(spec, room, theme) {
    let made = spec;
    if (room < NARROW) {
      const inside = Math.max(160, room - 90);
      made = stacked(spec, inside);
      const view = { ...made.config.view };
      for (const name of ["continuousWidth", "discreteWidth"]) if (view[name] > inside) view[name] = inside;
      const legend = { ...made.config.legend, orient: "bottom", direction: "vertical", columns: 2, labelLimit: room / 2 - 40, offset: 12 };
      made = { ...made, config: { ...made.config, view, legend } };
    }
    if (theme === "dark") {
      made = recoloured(made);
      made.config = { ...made.config, background: "transparent" };
      made.background = "transparent";
    }
    return made;
  }

  return { fitted, narrow: (room) => room < NARROW };
})();
