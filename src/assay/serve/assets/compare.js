// Two runs side by side: the parameters that differ are marked, and every claim stands with both verdicts.

import { get } from "./api.js";
import { fill, h, plural } from "./dom.js";
import { badge, counts, runLabel } from "./parts.js";

function side(letter, run) {
  return h("a", { class: "card side", href: `#/run/${run.id}` },
    h("p", { class: "kicker" }, letter), h("h3", {}, run.name || run.study), h("p", { class: "ask" }, runLabel({ ...run, name: "" })), counts(run.verdicts));
}

function cell(claim) {
  if (!claim) return h("td", { class: "what" }, "not part of it");
  return h("td", { class: `compared ${claim.verdict.replace(" ", "-")}` }, badge(claim.verdict), h("div", { html: claim.drawing_html }), h("span", { class: "numbers" }, claim.words));
}

function table(title, claims, note) {
  if (!claims.length) return null;
  return h("section", { class: "close" }, h("h2", {}, title, h("span", { class: "what" }, ` ${claims.length}`)), note ? h("p", { class: "how" }, note) : null,
    h("div", { class: "wide" }, h("table", { class: "data versus" },
      h("thead", {}, h("tr", {}, ["claim", "A", "B"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, claims.map((each) => h("tr", {}, h("th", { scope: "row" }, h("span", { class: "id" }, each.id), h("span", { class: "statement", html: (each.b || each.a).statement_html })), cell(each.a), cell(each.b)))))));
}

export async function show(root, [a, b]) {
  document.title = "Two runs · Assay";
  const found = await get(`/api/compare?a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}`);
  const differing = found.parameters.filter((each) => each.differs);
  const body = h("tbody", {});
  const all = h("input", { type: "checkbox", id: "all-parameters", onchange: parameters });
  function parameters() {
    const rows = all.checked ? found.parameters : differing;
    fill(body, found.request.map((each) => row({ ...each, differs: true, description: "" })), rows.map(row));
  }
  const row = (each) => h("tr", { class: each.differs ? "differs" : "" }, h("th", { scope: "row" }, each.name, each.differs ? h("span", { class: "hidden" }, " (differs)") : null), h("td", { class: "value", "data-name": "A" }, each.a), h("td", { class: "value", "data-name": "B" }, each.b), h("td", { class: "words" }, each.description));
  parameters();
  const turned = found.claims.filter((each) => each.turned), moved = found.claims.filter((each) => each.moved && !each.turned);
  const code = Object.entries(found.code);
  fill(root,
    h("header", { class: "top" }, h("p", { class: "kicker" }, "Side by side"), h("h1", {}, `${plural(turned.length, "verdict")} turned`),
      h("p", { class: "question" }, `${plural(moved.length, "estimate")} moved, ${plural(found.claims.length - turned.length - moved.length, "claim")} the same; ${plural(differing.length, "parameter")} ${differing.length === 1 ? "differs" : "differ"}.`)),
    h("div", { class: "sides" }, side("A", found.a), side("B", found.b)),
    h("section", { class: "close" }, h("div", { class: "section-head" }, h("h2", {}, "What differs"), h("label", { class: "inline", for: "all-parameters" }, all, "all parameters")),
      h("div", { class: "wide" }, h("table", { class: "data plain differences" }, h("thead", {}, h("tr", {}, ["", "A", "B", "meaning"].map((name) => h("th", { scope: "col" }, name)))), body)),
      code.length ? h("p", { class: "notice" }, "The code differs: ", code.map(([arm, files]) => `${arm} (${files.join(", ")})`).join("; ")) : null),
    table("Verdicts that turned", turned), table("Estimates that moved", moved));
}
