// Draws the charts of the page from the packed JSON beside them, each when it comes near the window.
(function () {
  "use strict";
  const charts = [...document.querySelectorAll(".chart")];
  const drawn = new Map(); // chart -> { view, room, theme }

  function rows(data) {
    if (!data || !data.columns) return data;
    const names = Object.keys(data.columns);
    return data.columns[names[0]].map((_, i) => Object.fromEntries(names.map((name) => [name, data.columns[name][i]])));
  }

  async function read(chart) {
    const bytes = Uint8Array.from(atob(chart.querySelector("script").textContent), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const spec = JSON.parse(await new Response(stream).text());
    for (const name of Object.keys(spec.datasets || {})) spec.datasets[name] = rows(spec.datasets[name]);
    return spec;
  }

  async function draw(chart) {
    const canvas = chart.querySelector(".canvas");
    const room = chart.clientWidth, theme = document.documentElement.dataset.theme;
    chart.dataset.state = "drawing";
    try {
      const spec = assayFit.fitted(await read(chart), room, theme);
      // A server's policy forbids a page to make code out of text; from disk that is the faster way.
      const made = await vegaEmbed(canvas, spec, { actions: false, renderer: chart.dataset.renderer, ast: location.protocol !== "file:" });
      drawn.get(chart)?.view.finalize();
      drawn.set(chart, { view: made.view, room, theme });
      made.view.addEventListener("click", (event, item) => {
        if (item?.datum) chart.dispatchEvent(new CustomEvent("assay:picked", { bubbles: true, detail: item.datum }));
      });
      chart.dataset.state = "drawn";
      chart.style.minHeight = "0";
    } catch (error) {
      chart.dataset.state = "failed";
      canvas.textContent = "This chart could not be drawn: " + error.message;
    }
  }

  // One after the other: a page that draws all at once does not answer meanwhile.
  let queue = Promise.resolve();
  function ask(chart) {
    queue = queue.then(() => draw(chart));
    return queue;
  }

  const near = new IntersectionObserver(
    (seen) => {
      for (const entry of seen.filter((each) => each.isIntersecting)) {
        near.unobserve(entry.target);
        ask(entry.target);
      }
    },
    { rootMargin: "700px" },
  );
  charts.forEach((chart) => near.observe(chart));

  document.addEventListener("assay:theme", () => [...drawn.keys()].forEach(ask));
  let waiting;
  window.addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      for (const [chart, { room }] of drawn) {
        const now = chart.clientWidth;
        if (assayFit.narrow(room) !== assayFit.narrow(now) || (assayFit.narrow(now) && Math.abs(now - room) > 40)) ask(chart);
      }
    }, 200);
  });
  window.addEventListener("beforeprint", () => charts.filter((chart) => !drawn.has(chart)).forEach(ask));

  window.assayCharts = { read, view: async (chart) => (drawn.has(chart) || (await ask(chart)), drawn.get(chart)?.view) };
})();
