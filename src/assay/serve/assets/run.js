// A stored run: what it was, its verdicts, its parameters, and the ways on from there.

import { get, post } from "./api.js";
import { fill, h, tell } from "./dom.js";
import { counts, runLabel, stateBadge, verdicts } from "./parts.js";

async function report(run, button) {
  const words = button.textContent;
  button.disabled = true;
  button.textContent = "Drawing the figures…";
  try {
    location.href = (await post(`/api/runs/${run.id}/report`)).address;
  } catch (error) {
    tell(error.message, true);
  }
  button.disabled = false;
  button.textContent = words;
}

function compareWith(run, others) {
  const same = others.filter((other) => other.id !== run.id && other.study === run.study);
  if (!same.length) return null;
  return h("select", { "aria-label": "Compare with another run", class: "secondary", onchange: (event) => event.target.value && (location.hash = `#/compare/${run.id}/${event.target.value}`) },
    h("option", { value: "" }, "Compare with…"), same.map((other) => h("option", { value: other.id }, runLabel(other))));
}

function naming(run) {
  const input = h("input", { type: "text", value: run.name, maxlength: 80, "aria-label": "Name of this run", placeholder: "name this run" });
  return h("form", { class: "naming", onsubmit: async (event) => {
    event.preventDefault();
    try {
      await post(`/api/runs/${run.id}/name`, { name: input.value.trim() });
      tell(input.value.trim() ? `It is called “${input.value.trim()}” now.` : "It has no name now.");
    } catch (error) {
      tell(error.message, true);
    }
  } }, input, h("button", { type: "submit", class: "secondary" }, "Name it"));
}

export async function drawRun(root, id, { inside = false } = {}) {
  if (!inside || !root.firstChild) fill(root, h("p", { class: "waiting" }, "Judging the claims…"));
  const [run, others] = await Promise.all([get(`/api/runs/${encodeURIComponent(id)}`), get("/api/runs")]);
  const actions = h("p", { class: "actions" },
    h("button", { type: "button", class: "primary", onclick: (event) => report(run, event.target) }, "Open the report"),
    run.snapshots ? h("a", { class: "secondary", href: `#/explore/${run.id}` }, "Watch the neurons") : null,
    inside ? null : h("a", { class: "secondary", href: `#/study/${run.study}?run=${run.id}` }, "Change a parameter"),
    compareWith(run, others));
  const head = inside ? h("section", { class: "close" }, h("h2", {}, "What came out"), actions) : h("header", { class: "top" },
    h("p", { class: "kicker" }, run.kind === "sweep" ? "Cell of a map" : "Stored run"), h("h1", {}, run.title), h("p", { class: "question" }, run.question),
    h("p", { class: "job-state" }, stateBadge(run.status), counts(run.verdicts)),
    h("p", { class: "facts" }, [run.preset, run.asked, `${run.seeds} seeds`, run.data.length ? `on ${run.data.join(", ")}` : "", run.date, run.took].filter(Boolean).join(" · ")),
    actions, run.kind === "run" ? naming(run) : null);
  fill(root, head,
    run.preset === "smoke" ? h("p", { class: "notice" }, h("b", {}, "Smoke size. "), "Small enough to look; its verdicts are never to be quoted.") : null,
    run.notices.map((notice) => h("p", { class: "notice" }, notice)),
    run.failures.map((failure) => h("p", { class: "notice bad" }, `${failure.unit} failed: ${failure.error}`)),
    verdicts(run.claims),
    h("section", { class: "close" }, h("h2", {}, "Parameters"), h("table", { class: "data plain" },
      h("thead", {}, h("tr", {}, ["parameter", "value", "from", "meaning"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, run.parameters.map((each) => h("tr", { class: each.origin === "override" ? "changed" : "" },
        h("th", { scope: "row" }, each.name), h("td", { class: "value" }, each.value), h("td", {}, h("span", { class: `tag ${each.origin}` }, each.origin)), h("td", {}, each.description)))))),
    h("section", { class: "close" }, h("h2", {}, "Run it again"), h("pre", {}, run.facts.command), h("dl", { class: "facts-list" },
      Object.entries(run.facts).filter(([name]) => name !== "command").map(([name, fact]) => h("div", {}, h("dt", {}, name), h("dd", {}, fact))))));
  return run;
}

export async function show(root, [id]) {
  const run = await drawRun(root, id);
  document.title = `${run.title} · Assay`;
}
