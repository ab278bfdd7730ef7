// The explorer: neurons move towards the true features as training goes on.

import { get } from "./api.js";
import { fill, h, number, spark } from "./dom.js";
import { Disk } from "./disk.js";
import { runLabel } from "./parts.js";

const SECONDS = 9; // of a whole training, when it is played

async function nothing(root) {
  fill(root, h("header", { class: "top" }, h("p", { class: "kicker" }, "Explorer"), h("h1", {}, "Watch neurons find the features"),
    h("p", { class: "question" }, "No stored run has recorded its neurons yet. The study feature-emergence does, in ten seconds.")),
    h("p", { class: "actions" }, h("a", { class: "primary", href: "#/study/feature-emergence" }, "Run feature-emergence")));
}

export async function show(root, [id]) {
  document.title = "Explorer · Assay";
  const runs = await get("/api/runs?neurons=true");
  if (!runs.length) return nothing(root);
  const run = runs.find((each) => each.id === id) || runs[0];
  const records = await get(`/api/runs/${run.id}/neurons`);
  const seedList = records[0].seeds.filter((seed) => records.every((record) => record.seeds.includes(seed)));
  const state = { at: 0, seed: seedList[0], colour: "cosine", neuron: null, playing: false };
  const disks = [];

  const choose = h("select", { id: "explored", onchange: () => (location.hash = `#/explore/${choose.value}`) }, runs.map((each) => h("option", { value: each.id, selected: each.id === run.id }, runLabel(each))));
  const seeds = h("select", { id: "seed", onchange: () => ((state.seed = Number(seeds.value)), load()) }, seedList.map((seed) => h("option", { value: seed }, seed)));
  const colours = h("select", { id: "colour", onchange: () => ((state.colour = colours.value), draw()) });
  const slider = h("input", { type: "range", id: "training", min: 0, max: 1, step: 0.01, value: 0, "aria-label": "Training step", oninput: () => (pause(), (state.at = Number(slider.value)), draw()) });
  const play = h("button", { type: "button", class: "play", "aria-label": "Play", onclick: () => (state.playing ? pause() : start()) }, "▶");
  const step = h("output", { class: "step", for: "training" });
  const plates = h("div", { class: "plates" });
  const side = h("aside", { class: "panel neuron", "aria-live": "off" });
  const which = h("input", { type: "number", id: "neuron", min: 0, onchange: () => pick(which.value === "" ? null : Number(which.value)) });

  function pick(neuron) {
    state.neuron = neuron;
    draw();
  }

  function draw() {
    slider.value = state.at;
    const look = Math.round(state.at);
    const data = disks[0].data;
    step.textContent = `step ${data.steps[look]}`;
    slider.setAttribute("aria-valuetext", step.textContent);
    for (const disk of disks) disk.draw(state);
    drawSide(look);
  }

  function drawSide(look) {
    const known = state.neuron !== null && state.neuron < disks[0].data.neurons;
    which.max = disks[0].data.neurons - 1;
    if (document.activeElement !== which) which.value = known ? state.neuron : "";
    fill(side, h("h2", {}, known ? `Neuron ${state.neuron}` : "All neurons"),
      h("label", { class: "inline", for: "neuron" }, "Number", which),
      disks.map(({ data }) => h("div", { class: "probes" }, disks.length > 1 ? h("h3", {}, name(data)) : null,
        known ? Object.entries(data.probes).map(([probe, looks]) => h("div", { class: "metric" },
          h("p", {}, h("b", {}, probe), h("span", { class: "value" }, number(looks[look][state.neuron]))), marked(looks.map((values) => values[state.neuron]), state.at)))
          : h("div", { class: "metric" }, h("p", {}, h("b", {}, "at the true feature"), h("span", { class: "value" }, `${Math.round(100 * aligned(data, look))} %`)), marked(data.steps.map((_, i) => aligned(data, i)), state.at, [0, 1])))),
      h("p", { class: "how" }, known ? "Its values over training; the line is now." : "Point at a neuron, or give its number, to see what the probes say of it. Counted are those whose direction has a cosine of 0.95 or more with the feature or its opposite."));
  }

  const aligned = (data, look) => (data.probes.cosine ? data.probes.cosine[look].filter((value) => Math.abs(value) >= 0.95).length / data.neurons : 0);

  function marked(series, at, ends = null) {
    const box = h("div", { class: "over-time" }, spark(series, { ends }), h("i", {}));
    box.lastChild.style.left = `${(100 * (4 + (at / Math.max(1, series.length - 1)) * 212)) / 220}%`;
    return box;
  }

  const name = (data) => Object.entries(data.point).map(([key, value]) => `${key} ${value}`).join(", ") || data.arm;

  let frame, last;
  function start() {
    state.playing = true;
    if (state.at >= slider.max - 0.01) state.at = 0;
    play.textContent = "❚❚";
    play.setAttribute("aria-label", "Pause");
    last = performance.now();
    frame = requestAnimationFrame(tick);
  }
  function tick(now) {
    state.at = Math.min(Number(slider.max), state.at + ((now - last) / 1000) * (slider.max / SECONDS));
    last = now;
    draw();
    if (state.at >= slider.max) pause();
    else frame = requestAnimationFrame(tick);
  }
  function pause() {
    state.playing = false;
    play.textContent = "▶";
    play.setAttribute("aria-label", "Play");
    cancelAnimationFrame(frame);
  }

  async function load() {
    const found = await Promise.all(records.map((_, i) => get(`/api/runs/${run.id}/neurons/${i}?seed=${state.seed}`)));
    const looks = found[0].steps.length;
    disks.splice(0, disks.length, ...found.filter((data) => data.steps.length === looks).slice(0, 4).map((data) => new Disk(data, pick)));
    slider.max = looks - 1;
    slider.step = 0.05;
    state.at = Math.min(state.at, looks - 1);
    fill(colours, Object.keys(found[0].probes).map((probe) => h("option", { selected: probe === state.colour }, probe)));
    fill(plates, disks.map((disk) => h("figure", { class: "plate" }, disk.canvas, h("figcaption", {}, h("b", {}, name(disk.data))))));
    for (const disk of disks) disk.fit();
    draw();
  }

  fill(root,
    h("header", { class: "top tight" }, h("p", { class: "kicker" }, "Explorer"), h("h1", {}, "Watch neurons find the features"),
      h("p", { class: "question" }, "Each point is the direction of a neuron's weights, seen from the side: the true feature lies at the right edge, its opposite at the left.")),
    h("div", { class: "toolbar" }, h("label", { for: "explored" }, "Run", choose), h("label", { for: "seed" }, "Seed", seeds), h("label", { for: "colour" }, "Colour by", colours)),
    h("div", { class: "stage" }, h("div", {}, plates, h("div", { class: "scrub" }, play, slider, step)), side));
  await load();
  const redraw = () => (disks.forEach((disk) => disk.fit()), draw());
  window.addEventListener("resize", redraw);
  document.addEventListener("assay:theme", redraw);
  return () => (pause(), window.removeEventListener("resize", redraw), document.removeEventListener("assay:theme", redraw));
}
