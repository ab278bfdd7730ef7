// All studies, and what goes on at the moment.

import { get } from "./api.js";
import { fill, h, plural } from "./dom.js";
import { jobLine } from "./parts.js";
import * as live from "./live.js";

function card(study, count) {
  return h("a", { class: "card", href: `#/study/${study.name}` },
    h("h3", {}, study.title),
    h("p", { class: "ask" }, study.question),
    h("p", { class: "card-facts" },
      h("span", {}, plural(study.claims.length, "claim")),
      h("span", {}, plural(study.arms.length, "arm")),
      h("span", {}, `smoke ${study.cost.smoke}`),
      h("span", {}, `laptop ${study.cost.laptop}`),
      count ? h("span", { class: "stored" }, plural(count, "stored run")) : null));
}

export async function show(root) {
  const [studies, runs] = await Promise.all([get("/api/studies"), get("/api/runs")]);
  const going = h("section", { class: "going", "aria-label": "At work" });
  const counts = {};
  for (const run of runs) counts[run.study] = (counts[run.study] || 0) + 1;
  fill(root,
    h("header", { class: "top hero" },
      h("p", { class: "kicker" }, "The live lab"),
      h("h1", {}, "Change a number, and see a theory bend."),
      h("p", { class: "question" }, "Pick a study, change what you doubt, and run it here. Every claim is judged again: it holds, it fails, or the seeds do not decide.")),
    going,
    h("section", { class: "close" }, h("h2", {}, "Studies"), h("div", { class: "cards" }, studies.map((study) => card(study, counts[study.name])))));

  function jobs() {
    const open = live.all().filter((job) => !live.over(job));
    going.hidden = !open.length;
    fill(going, h("h2", {}, "At work"), open.map(jobLine));
  }
  jobs();
  return live.watch(jobs);
}
