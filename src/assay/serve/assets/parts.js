// What several views show: badges, counts, claims, progress, a run in a line.

import { fill, h, plural } from "./dom.js";

export const MARKS = { holds: "✓", fails: "✗", undecided: "?", "not run": "–" };
const MANY = { holds: "hold", fails: "fail" };
const STATES = {
  waiting: "not-run", running: "undecided", complete: "holds", failed: "fails", cancelled: "not-run", interrupted: "undecided",
};
export const kind = (verdict) => verdict.replace(" ", "-");

export const badge = (verdict) =>
  h("span", { class: `badge ${kind(verdict)}` }, h("span", { "aria-hidden": "true" }, MARKS[verdict]), ` ${verdict}`);

export const stateBadge = (state) => h("span", { class: `badge ${STATES[state] || "not-run"}` }, state);

export const counts = (verdicts) =>
  h("span", { class: "counts" }, Object.entries(verdicts).map(([verdict, count]) =>
    h("span", { class: `badge ${kind(verdict)}` }, h("span", { "aria-hidden": "true" }, MARKS[verdict]), ` ${count} ${(count === 1 ? null : MANY[verdict]) || verdict}`)));

export function progress(job) {
  const share = Math.round(100 * job.share);
  return h("div", { class: `progress ${job.state}`, role: "progressbar", "aria-valuenow": share, "aria-valuemin": 0, "aria-valuemax": 100, "aria-label": "Progress" },
    h("i", { class: job.state === "running" && !job.total ? "starting" : "", "data-share": share }));
}

// Widths are set from here: the page's policy allows no styles in markup.
export function place(root) {
  for (const bar of root.querySelectorAll("i[data-share]")) bar.style.width = `${bar.dataset.share}%`;
  return root;
}

export function jobLine(job) {
  const units = job.total ? `${job.done} of ${plural(job.total, "unit")}` : job.state === "running" ? "starting…" : "";
  return place(h("a", { class: "job-line", href: job.kind === "gemfilter" ? "#/gemfilter" : `#/job/${job.id}` },
    h("span", { class: "job-title" }, job.title, job.study ? h("span", { class: "what" }, ` ${job.request.preset || ""}`) : null),
    progress(job), h("span", { class: "what" }, units), stateBadge(job.state)));
}

function headline(claim) {
  return h("div", { class: `headline ${kind(claim.verdict)} verdict-card` },
    h("p", { class: "claim-head" }, h("span", { class: "id" }, claim.id), badge(claim.verdict)),
    h("p", { class: "statement", html: claim.statement_html }),
    h("div", { class: "measured" },
      h("div", { html: claim.drawing_html }),
      h("p", { class: "numbers" }, claim.words, claim.seeds ? h("span", { class: "what" }, ` · ${plural(claim.seeds, "seed")}`) : null),
      h("p", { class: "criterion" }, h("span", { class: "what" }, "asked: "), h("span", { html: claim.criterion_html })),
      claim.reason && claim.verdict !== "holds" ? h("p", { class: "reason" }, claim.reason) : null));
}

function row(claim) {
  const details = h("details", { class: `claim ${kind(claim.verdict)}`, "data-verdict": claim.verdict },
    h("summary", {},
      h("span", { class: "id" }, claim.id), h("span", { class: "statement", html: claim.statement_html }),
      h("span", { class: "measured", html: claim.drawing_html }), h("span", { class: "verdict" }, badge(claim.verdict))),
    h("dl", { class: "more" },
      claim.words ? h("div", {}, h("dt", {}, "measured"), h("dd", {}, claim.words)) : null,
      h("div", {}, h("dt", {}, "asked"), h("dd", { html: claim.criterion_html })),
      claim.reason ? h("div", {}, h("dt", {}, "why"), h("dd", {}, claim.reason)) : null,
      h("div", {}, h("dt", {}, "source"), h("dd", {}, claim.source)),
      claim.error ? h("div", {}, h("dt", {}, "error"), h("dd", {}, claim.error)) : null));
  return { claim, details, text: `${claim.id} ${claim.statement} ${claim.source}`.toLowerCase() };
}

// Headlines as cards, then all claims with a filter.
export function verdicts(claims) {
  const heads = claims.filter((claim) => claim.headline);
  const rows = claims.map(row);
  const told = h("output", {});
  const words = h("input", { type: "search", placeholder: "Words in a claim", "aria-label": "Filter claims by words", oninput: apply });
  const kinds = [...new Set(claims.map((claim) => claim.verdict))];
  const buttons = Object.keys(MARKS).filter((verdict) => kinds.includes(verdict)).map((verdict) =>
    h("button", { type: "button", class: kind(verdict), "data-verdict": verdict, "aria-pressed": "false", onclick: press },
      `${claims.filter((claim) => claim.verdict === verdict).length} ${MANY[verdict] || verdict}`));
  function press(event) {
    event.target.setAttribute("aria-pressed", String(event.target.getAttribute("aria-pressed") !== "true"));
    apply();
  }
  function apply() {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const pressed = buttons.filter((button) => button.getAttribute("aria-pressed") === "true").map((button) => button.dataset.verdict);
    let shown = 0;
    for (const { claim, details, text } of rows) {
      details.hidden = !(wanted.every((word) => text.includes(word)) && (!pressed.length || pressed.includes(claim.verdict)));
      shown += !details.hidden;
    }
    told.textContent = shown === rows.length ? plural(shown, "claim") : `${shown} of ${plural(rows.length, "claim")}`;
  }
  apply();
  return [
    heads.length ? h("section", { class: "close" }, h("h2", {}, "Headline claims"), h("div", { class: "verdict-cards" }, heads.map(headline))) : null,
    h("section", { class: "close" }, h("h2", {}, "All claims"),
      h("form", { class: "filter", onsubmit: (event) => event.preventDefault() }, words, buttons, told),
      h("div", { class: "group" }, rows.map((each) => each.details))),
  ];
}

export function runLabel(run) {
  return [run.name || run.study, run.preset, run.asked, `${run.seeds} seeds`, run.date].filter(Boolean).join(" · ");
}

export { fill };
