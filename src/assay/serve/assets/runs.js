// All jobs and all stored runs; two of them can be laid side by side.

import { get, post, remove } from "./api.js";
import { fill, h, plural, tell } from "./dom.js";
import { counts, jobLine, stateBadge } from "./parts.js";
import * as live from "./live.js";

export async function show(root) {
  document.title = "Runs · Assay";
  let runs = await get("/api/runs");
  const chosen = new Set();
  const jobs = h("section", { class: "close" });
  const body = h("tbody", {});
  const studies = h("select", { "aria-label": "Only runs of one study", onchange: draw });
  const told = h("output", {});
  const side = h("button", { type: "button", class: "primary", disabled: true, onclick: () => (location.hash = `#/compare/${[...chosen].reverse().join("/")}`) }, "Compare two runs");
  fill(root,
    h("header", { class: "top" }, h("p", { class: "kicker" }, "The live lab"), h("h1", {}, "Runs")),
    jobs,
    h("section", { class: "close" }, h("h2", {}, "Stored runs"),
      h("div", { class: "toolbar" }, studies, side, told),
      h("div", { class: "wide" }, h("table", { class: "data runs" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, h("span", { class: "hidden" }, "compare")), ["run", "preset and request", "seeds", "status", "verdicts", "date"].map((name) => h("th", { scope: "col" }, name)))), body))));

  function pick(event, id) {
    if (event.target.checked) chosen.add(id);
    else chosen.delete(id);
    if (chosen.size > 2) chosen.delete([...chosen][0]);
    draw();
  }

  function draw() {
    const names = [...new Set(runs.map((run) => run.study))].sort();
    const wanted = studies.value;
    fill(studies, h("option", { value: "" }, "all studies"), names.map((name) => h("option", { value: name, selected: name === wanted }, name)));
    const shown = runs.filter((run) => !wanted || run.study === wanted);
    side.disabled = chosen.size !== 2;
    told.textContent = plural(shown.length, "run");
    fill(body, shown.length ? shown.map((run) => h("tr", {},
      h("td", {}, h("input", { type: "checkbox", checked: chosen.has(run.id), "aria-label": `Compare ${run.name || run.id}`, onchange: (event) => pick(event, run.id) })),
      h("th", { scope: "row" }, h("a", { href: `#/run/${run.id}` }, run.name || run.study), run.name ? h("span", { class: "what" }, ` ${run.study}`) : null),
      h("td", { class: "request" }, h("b", {}, run.preset), run.asked ? h("code", {}, run.asked) : null),
      h("td", { class: "number" }, run.seeds), h("td", {}, stateBadge(run.status)), h("td", {}, counts(run.verdicts)), h("td", { class: "what" }, run.date)))
      : h("tr", {}, h("td", { colspan: 7 }, "No run is stored yet. ", h("a", { href: "#/" }, "Start one"), ".")));
  }

  function queue() {
    const all = live.all().filter((job) => job.kind === "run").slice(0, 12);
    jobs.hidden = !all.length;
    fill(jobs, h("h2", {}, "Queue"), all.map((job) => h("div", { class: "job-row" }, jobLine(job),
      !live.over(job) ? h("button", { type: "button", class: "secondary", "aria-label": `Cancel ${job.title}`, onclick: () => act(post(`/api/jobs/${job.id}/cancel`)) }, "Cancel") : null,
      live.over(job) && job.state !== "complete" ? h("button", { type: "button", class: "secondary", onclick: async () => live.note(await act(post(`/api/jobs/${job.id}/resume`))) }, "Resume") : null,
      live.over(job) ? h("button", { type: "button", class: "secondary", "aria-label": `Forget ${job.title}`, onclick: async () => (await act(remove(`/api/jobs/${job.id}`))) && live.drop(job.id) }, "Forget") : null)));
  }

  async function act(asked) {
    try {
      return await asked;
    } catch (error) {
      tell(error.message, true);
      return null;
    }
  }

  draw();
  queue();
  return live.watch(async (job) => {
    queue();
    if (job && live.over(job)) {
      runs = await get("/api/runs");
      draw();
    }
  });
}
