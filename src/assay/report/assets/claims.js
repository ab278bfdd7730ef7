// Filters all claims by verdict and words, and opens the one that a link points at.
(function () {
  "use strict";
  const form = document.querySelector(".filter");
  if (!form) return;
  const words = form.querySelector("input");
  const buttons = [...form.querySelectorAll("button[data-verdict]")];
  const claims = [...document.querySelectorAll(".claim")];
  const wordsOf = (claim) => [...claim.querySelectorAll(".find")].map((part) => part.textContent.toLowerCase()).join(" ");
  const texts = new Map(claims.map((claim) => [claim, wordsOf(claim)]));
  form.hidden = false;

  function apply() {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const verdicts = buttons.filter((each) => each.getAttribute("aria-pressed") === "true").map((each) => each.dataset.verdict);
    let shown = 0;
    for (const claim of claims) {
      const fits = wanted.every((word) => texts.get(claim).includes(word));
      claim.hidden = !(fits && (!verdicts.length || verdicts.includes(claim.dataset.verdict)));
      shown += !claim.hidden;
    }
    for (const group of document.querySelectorAll(".group")) group.hidden = !group.querySelector(".claim:not([hidden])");
    form.querySelector("output").textContent = shown === claims.length ? `${shown} claims` : `${shown} of ${claims.length} claims`;
  }

  function open() {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target || !target.classList.contains("claim")) return;
    if (target.hidden) {
      words.value = "";
      buttons.forEach((each) => each.setAttribute("aria-pressed", "false"));
      apply();
    }
    target.open = true;
    target.scrollIntoView({ block: "center" });
  }

  form.addEventListener("submit", (event) => event.preventDefault());
  words.addEventListener("input", apply);
  for (const button of buttons) {
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
      apply();
    });
  }
  window.addEventListener("hashchange", open);
  apply();
  open();
})();
