// One job: how far it is, its first numbers as they come, and its verdicts when it is done.

import { get, post } from "./api.js";
import { fill, h, number, plural, shown, spark, tell } from "./dom.js";
import { counts, place, progress, stateBadge } from "./parts.js";
import { drawRun } from "./run.js";
import * as live from "./live.js";

export async function show(root, [id]) {
  if (!live.find(id)) live.note(await get(`/api/jobs/${encodeURIComponent(id)}`));
  const head = h("header", { class: "top job-head" });
  const numbers = h("section", { class: "close", "aria-label": "First numbers" });
  const words = h("section", { class: "close" });
  const result = h("div", {});
  fill(root, head, numbers, words, result);
  let drawn = false;

  async function act(path, sentence) {
    try {
      const job = await post(path);
      live.note(job);
      if (job.id !== id) location.hash = `#/job/${job.id}`;
      else tell(sentence);
    } catch (error) {
      tell(error.message, true);
    }
  }

  function draw(job) {
    document.title = `${job.title}: ${job.state} · Assay`;
    const request = job.request;
    const facts = [`preset ${request.preset}`, request.seeds ? plural(request.seeds, "seed") : "", request.arms ? `arms ${request.arms}` : "", request.first_seed ? `from seed ${request.first_seed}` : ""].filter(Boolean).join(" · ");
    const units = job.total ? `${job.done} of ${plural(job.total, "unit")}${job.reused ? `, ${job.reused} of them reused` : ""}${job.failures ? `, ${job.failures} failed` : ""}` : job.state === "running" ? "The worker is starting." : job.state === "waiting" ? "It waits for its turn." : "";
    fill(head,
      h("p", { class: "kicker" }, "Run"),
      h("h1", {}, job.title),
      h("p", { class: "job-state" }, stateBadge(job.state), counts(job.verdicts), h("span", { class: "what" }, units)),
      place(h("div", {}, progress(job))),
      job.message ? h("p", { class: `notice ${job.state === "failed" ? "bad" : ""}`, role: job.state === "failed" ? "alert" : null }, job.message) : null,
      h("p", { class: "facts" }, facts),
      Object.keys(request.set || {}).length ? h("p", { class: "changes" }, Object.entries(request.set).map(([name, value]) => h("code", {}, `${name} = ${shown(value)}`))) : null,
      h("p", { class: "actions" },
        !live.over(job) ? h("button", { type: "button", class: "secondary", onclick: () => act(`/api/jobs/${id}/cancel`, "It is being cancelled.") }, "Cancel") : null,
        live.over(job) && job.state !== "complete" ? h("button", { type: "button", class: "primary", onclick: () => act(`/api/jobs/${id}/resume`) }, "Resume") : null,
        h("a", { class: "secondary", href: `#/study/${job.study}${job.run ? `?run=${job.run}` : ""}` }, "Change a parameter")));
    numbers.hidden = live.over(job) || !job.metrics.length;
    fill(numbers, h("h2", {}, "First numbers"), h("div", { class: "metrics" }, [...job.metrics].reverse().map(({ unit, metric, series }) =>
      h("div", { class: "metric" }, h("p", {}, h("b", {}, metric.replaceAll("_", " ")), h("span", { class: "value" }, number(series[series.length - 1]))), spark(series), h("p", { class: "what" }, unit)))));
    words.hidden = !job.said.length || job.state === "complete";
    fill(words, h("h2", {}, "What it says"), h("ul", { class: "said" }, [...job.said].reverse().slice(0, 12).map((sentence) => h("li", {}, sentence))));
    if (job.state === "complete" && !drawn) {
      drawn = true;
      drawRun(result, job.run, { inside: true }).catch((error) => fill(result, h("p", { class: "notice" }, error.message)));
    }
  }

  draw(live.find(id));
  return live.watch((job) => {
    if (job === null ? live.find(id) : job.id === id) draw(live.find(id));
  });
}
