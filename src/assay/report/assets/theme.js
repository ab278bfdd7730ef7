// Light or dark: what the reader chose here, else what the system says. Runs before the page is drawn.
(function () {
  "use strict";
  const system = window.matchMedia("(prefers-color-scheme: dark)");

  function kept() {
    try {
      return localStorage.getItem("assay-theme");
    } catch {
      return null; // a page from disk may have no storage
    }
  }

  function show(theme) {
    if (document.documentElement.dataset.theme === theme) return;
    document.documentElement.dataset.theme = theme;
    document.dispatchEvent(new CustomEvent("assay:theme", { detail: theme }));
  }

  show(kept() || (system.matches ? "dark" : "light"));
  system.addEventListener("change", () => kept() || show(system.matches ? "dark" : "light"));

  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    if (!button) return;
    button.hidden = false;
    button.addEventListener("click", () => {
      const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
      try {
        localStorage.setItem("assay-theme", theme);
      } catch {
        // the choice lasts as long as the page
      }
      show(theme);
    });
  });
})();
