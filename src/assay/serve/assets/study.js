// One study: a form made from its parameters, what a run would do, and the button that starts it.

import { get, post } from "./api.js";
import { duration, fill, h, plural, shown, tell } from "./dom.js";
import { field } from "./fields.js";
import * as live from "./live.js";

export async function show(root, [name], query) {
  const [study, before] = await Promise.all([
    get(`/api/studies/${encodeURIComponent(name)}`),
    query.get("run") ? get(`/api/runs`).then((runs) => runs.find((run) => run.id === query.get("run"))) : null,
  ]);
  document.title = `${study.title} · Assay`;
  const state = {
    preset: before?.preset || query.get("preset") || "smoke", set: { ...(before?.set || {}) }, seeds: null, first_seed: 0, arms: null, name: "",
  };
  // A named setting has its own values of some parameters, which are changed as setting.parameter.
  const specs = new Map(study.parameters.map((parameter) => [parameter.name, parameter]));
  const named = Object.entries(study.settings).filter(([, fixed]) => fixed.length);
  const every = [...study.parameters, ...named.flatMap(([setting, fixed]) => fixed.map((name) => ({ ...specs.get(name), name: `${setting}.${name}`, label: name })))];
  const fields = new Map(every.map((parameter) => [parameter.name, field(parameter, (value) => change(parameter.name, value))]));
  const panel = h("aside", { class: "panel", "aria-label": "What this run will do" });
  const presets = h("div", { class: "presets", role: "radiogroup", "aria-label": "Preset" });
  const seeds = h("input", { type: "number", min: 1, max: 1000, id: "seeds", onchange: () => ((state.seeds = seeds.value ? Number(seeds.value) : null), ask()) });
  const first = h("input", { type: "number", min: 0, id: "first-seed", value: "0", onchange: () => ((state.first_seed = Number(first.value) || 0), ask()) });
  const label = h("input", { type: "text", id: "run-name", maxlength: 80, placeholder: "optional", oninput: () => (state.name = label.value.trim()) });
  const arms = h("div", { class: "arms" });
  const changedCount = h("span", { class: "tag override", hidden: true });

  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
  const usual = () => study.presets[state.preset];

  function change(parameter, value) {
    if (value === undefined || same(value, usual().values[parameter])) delete state.set[parameter];
    else state.set[parameter] = value;
    mark();
    ask();
  }

  function mark() {
    for (const [parameter, each] of fields) each.mark(parameter in state.set, usual().values[parameter]);
    const count = Object.keys(state.set).length;
    changedCount.hidden = !count;
    changedCount.textContent = `${count} changed`;
  }

  function choose(preset) {
    state.preset = preset;
    seeds.placeholder = String(usual().seeds);
    for (const [parameter, each] of fields) each.set(parameter in state.set ? state.set[parameter] : usual().values[parameter]);
    for (const parameter of Object.keys(state.set)) if (same(state.set[parameter], usual().values[parameter])) delete state.set[parameter];
    fill(presets, Object.entries(study.presets).map(([each, { cost, seeds: count }]) =>
      h("label", { class: "preset" },
        h("input", { type: "radio", name: "preset", value: each, checked: each === preset, onchange: () => choose(each) }),
        h("b", {}, each), h("span", { class: "what" }, `${cost}, ${plural(count, "seed")}`))));
    drawArms();
    mark();
    ask();
  }

  function drawArms() {
    const chosen = new Set(state.arms || usual().arms);
    fill(arms, study.arms.map((arm) =>
      h("label", { class: "arm" },
        h("input", { type: "checkbox", checked: chosen.has(arm.name), onchange: (event) => pick(arm.name, event.target.checked) }),
        h("span", {}, h("b", {}, arm.name), arm.optional ? h("span", { class: "tag" }, " optional") : null, h("span", { class: "words" }, arm.description)))));
  }

  function pick(arm, wanted) {
    const chosen = new Set(state.arms || usual().arms);
    if (wanted) chosen.add(arm);
    else chosen.delete(arm);
    const list = study.arms.map((each) => each.name).filter((each) => chosen.has(each));
    state.arms = same([...list].sort(), [...usual().arms].sort()) ? null : list;
    ask();
  }

  const request = () => ({ study: study.name, preset: state.preset, seeds: state.seeds, first_seed: state.first_seed, set: state.set, arms: state.arms });

  let asking, waiting;
  function ask() {
    clearTimeout(waiting);
    panel.classList.add("asking");
    waiting = setTimeout(forecast, 350);
  }

  async function forecast() {
    asking?.abort();
    asking = new AbortController();
    try {
      if (state.arms && !state.arms.length) throw new Error("Choose at least one arm.");
      draw(await post("/api/plan", request(), { signal: asking.signal }), null);
    } catch (error) {
      if (error.name !== "AbortError") draw(null, error);
    }
  }

  // Stored units of other sizes say little about a preset as it stands, whose cost is stated.
  function cost(plan) {
    const changed = state.arms || Object.keys(state.set).length || state.seeds;
    if (!plan.compute) return ["at once", "Everything is stored already."];
    if (plan.seconds === null || (!plan.alike && !changed)) return [plan.stated, "the preset's stated cost; units of its size were not timed here"];
    const by = plan.alike ? "by units stored here" : `going by stored units of other sizes; the whole preset is stated at ${plan.stated}`;
    return [`about ${duration(plan.seconds)}`, `of computing, ${by}`];
  }

  function draw(plan, error) {
    if (plan || error) panel.classList.remove("asking");
    const [time, why] = plan ? cost(plan) : ["", ""];
    fill(panel,
      h("h2", {}, "This run"),
      error ? h("p", { class: "notice bad", role: "alert" }, error.message) : !plan ? h("p", { class: "cost" }, h("b", {}, "…"), h("span", { class: "what" }, "looking at what is stored")) : [
        h("p", { class: "cost" }, h("b", {}, time), h("span", { class: "what" }, why)),
        h("p", { class: "split" }, h("span", {}, h("b", {}, plan.compute), ` to compute`), h("span", {}, h("b", {}, plan.reuse), ` reused`)),
        reuse(plan)],
      h("div", { class: "panel-fields" },
        h("label", { for: "seeds" }, "Seeds", seeds), h("label", { for: "first-seed" }, "First seed", first), h("label", { for: "run-name" }, "Name", label)),
      h("button", { type: "button", class: "primary", disabled: Boolean(error), onclick: start }, "Start the run"),
      Object.keys(state.set).length ? h("p", { class: "changes" }, Object.entries(state.set).map(([parameter, value]) => h("code", {}, `${parameter} = ${shown(value)}`))) : null,
      plan ? h("details", { class: "fold reasons" }, h("summary", {}, "Arm by arm"), h("ul", {}, plan.arms.map((arm) =>
        h("li", {}, h("b", {}, arm.arm), h("span", { class: "what" }, ` ${arm.compute} to compute, ${arm.reuse} stored`), h("span", { class: "words" }, arm.reason))))) : null);
  }

  function reuse(plan) {
    const total = plan.compute + plan.reuse || 1;
    const bar = h("div", { class: "reuse", "aria-hidden": "true" }, h("i", {}));
    bar.firstChild.style.width = `${(100 * plan.reuse) / total}%`;
    return bar;
  }

  async function start(event) {
    event.target.disabled = true;
    try {
      const job = await post("/api/jobs", { ...request(), name: state.name });
      live.note(job);
      location.hash = `#/job/${job.id}`;
    } catch (error) {
      event.target.disabled = false;
      tell(error.message, true);
    }
  }

  const parts = [...new Set(study.parameters.map((parameter) => parameter.part))];
  const search = h("input", { type: "search", placeholder: "Find a parameter", "aria-label": "Find a parameter", oninput: find });
  const groups = parts.map((part) => {
    const own = study.parameters.filter((parameter) => parameter.part === part);
    const title = part ? part.replaceAll("_", " ") : parts.length > 1 ? "shared by several parts" : "all";
    return h("details", { class: "part", open: part === "" || parts.length < 3 },
      h("summary", {}, title, h("span", { class: "what" }, ` ${own.length}`)), own.map((parameter) => fields.get(parameter.name).element));
  });
  groups.push(...named.map(([setting, fixed]) => h("details", { class: "part" },
    h("summary", {}, `setting ${setting}`, h("span", { class: "what" }, ` ${fixed.length}`)), fixed.map((name) => fields.get(`${setting}.${name}`).element))));
  const opened = groups.map((group) => group.open);
  function find() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    groups.forEach((group, i) => {
      let seen = 0;
      for (const row of group.querySelectorAll(".field")) {
        row.hidden = !words.every((word) => row.dataset.words.includes(word));
        seen += !row.hidden;
      }
      group.hidden = !seen;
      group.open = words.length ? true : opened[i];
    });
  }

  fill(root,
    h("header", { class: "top" }, h("p", { class: "kicker" }, "Study"), h("h1", {}, study.title), h("p", { class: "question" }, study.question)),
    h("div", { class: "bench" },
      h("div", { class: "controls" },
        h("section", { class: "close" }, h("h2", {}, "Size"), presets),
        h("section", { class: "close" }, h("div", { class: "section-head" }, h("h2", {}, "Parameters"), changedCount, search), groups,
          named.length ? h("p", { class: "how" }, "A named setting is a point of the arms' grids with its own values of some parameters.") : null),
        h("section", { class: "close" }, h("h2", {}, "Arms"), h("p", { class: "how" }, "What is compared. Claims about arms that are left out are not judged."), arms),
        h("section", { class: "close" }, h("h2", {}, "What will be judged"), h("p", { class: "how" }, `${plural(study.claims, "claim")}, of which these tell the story:`),
          h("ul", { class: "stories" }, study.headlines.map((claim) => h("li", {}, h("span", { class: "id" }, claim.id), h("span", {}, claim.statement)))),
          h("p", { class: "origin" }, `Source: ${study.source}`))),
      panel));
  draw(null, null);
  choose(study.presets[state.preset] ? state.preset : "smoke");
  return () => (clearTimeout(waiting), asking?.abort());
}
