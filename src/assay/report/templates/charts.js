// Draws every chart of the page from the JSON beside it. One that cannot be drawn says so in its place.
(function () {
  "use strict";

  function rows(data) {
    if (!data || !data.columns) return data;
    const names = Object.keys(data.columns);
    return data.columns[names[0]].map((_, i) => Object.fromEntries(names.map((name) => [name, data.columns[name][i]])));
  }

  function read(chart) {
    const spec = JSON.parse(chart.querySelector("script").textContent);
    for (const name of Object.keys(spec.datasets || {})) spec.datasets[name] = rows(spec.datasets[name]);
    return spec;
  }

  async function draw(chart) {
    const canvas = chart.querySelector(".canvas");
    try {
      await vegaEmbed(canvas, read(chart), { actions: false, renderer: chart.dataset.renderer });
    } catch (error) {
      canvas.textContent = "This chart could not be drawn: " + error.message;
    }
  }

  // One after the other, so that the first chart shows before the last is computed.
  (async function () {
    for (const chart of document.querySelectorAll(".chart")) await draw(chart);
  })();
})();
