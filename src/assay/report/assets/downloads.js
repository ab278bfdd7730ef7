// A figure's drawing and the data behind it as files, made when somebody asks for them.
(function () {
  "use strict";

  function save(name, type, text) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  function cell(value) {
    const text = value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
    return /[",\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
  }

  // All tables of the chart below one another; where there are several, the first column says which.
  function table(spec) {
    const parts = Object.values(spec.datasets || {}).filter(Array.isArray);
    const names = [...new Set(parts.flatMap((rows) => rows.flatMap((row) => Object.keys(row))))];
    const several = parts.length > 1;
    const lines = [[...(several ? ["part"] : []), ...names].map(cell).join(",")];
    parts.forEach((rows, i) => {
      for (const row of rows) lines.push([...(several ? [i + 1] : []), ...names.map((name) => row[name])].map(cell).join(","));
    });
    return lines.join("\n") + "\n";
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-make]");
    if (!button) return;
    const chart = document.getElementById(button.dataset.of).querySelector(".chart");
    const name = button.dataset.name;
    if (button.dataset.make === "csv") save(name + ".csv", "text/csv", table(await assayCharts.read(chart)));
    else save(name + ".svg", "image/svg+xml", await (await assayCharts.view(chart)).toSVG());
  });
})();
