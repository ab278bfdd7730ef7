// GemFilter on a text of one's own: the answer, what was kept of the text, and what every layer would have kept.

import { get, post } from "./api.js";
import { fill, h, plural, tell } from "./dom.js";
import * as live from "./live.js";

function heat(result) {
  const rows = result.scan.length, columns = result.scan[0].length, high = 9;
  const canvas = h("canvas", { class: "scan", width: columns * 6, height: rows * high, role: "img", "aria-label": `What each of ${rows} layers would have kept along the text` });
  const style = getComputedStyle(document.documentElement), pen = canvas.getContext("2d");
  result.scan.forEach((shares, layer) => {
    pen.fillStyle = style.getPropertyValue(layer === result.layer ? "--fails" : "--accent");
    shares.forEach((share, i) => {
      pen.globalAlpha = 0.06 + 0.94 * share;
      pen.fillRect(i * 6, layer * high, 5.4, high - 1);
    });
  });
  return canvas;
}

function long(text) {
  const most = 700;
  return text.length <= most ? [text] : [text.slice(0, most / 2), h("span", { class: "cut" }, ` … ${(text.length - most).toLocaleString("en")} characters … `), text.slice(-most / 2)];
}

function drawn(result) {
  const answer = h("section", { class: "close" }, h("h2", {}, "Answer"), h("p", { class: "answer" }, result.answer || "(it said nothing)"), h("p", { class: "facts" }, `${result.model}: ${result.facts}`));
  if (result.found)
    return [answer, h("section", { class: "close" }, h("h2", {}, "What was kept"), h("p", { class: "how" }, "The passages that the model answered from, the best first."),
      result.found.map((one) => h("figure", { class: "found" }, h("figcaption", {}, one.where), h("div", { class: "passages", tabindex: 0, role: "region", "aria-label": one.where }, long(one.text)))))];
  return [
    answer,
    h("section", { class: "close" }, h("h2", {}, "What was kept"), h("p", { class: "how" }, "The model answered from the marked passages alone."),
      h("div", { class: "passages", tabindex: 0, role: "region", "aria-label": "The text with what was kept" }, result.passages.map((part) => (part.kept ? h("mark", {}, part.text) : h("span", {}, long(part.text)))))),
    h("section", { class: "close" }, h("h2", {}, "Layer by layer"), h("p", { class: "how" }, `Along the text from left to right, every layer from the first at the top: how much it would have kept. Layer ${result.layer}, which chose, stands out.`),
      h("figure", { class: "scan-figure" }, h("span", { class: "scan-label" }, "layer 0"), heat(result), h("span", { class: "scan-label" }, `layer ${result.scan.length - 1}`))),
  ];
}

export async function show(root) {
  document.title = "GemFilter · Assay";
  const { model, missing, indexes } = await get("/api/gemfilter");
  const text = h("textarea", { id: "text", rows: 12, required: true, maxlength: 500000, placeholder: "Paste a long text here." });
  const question = h("input", { type: "text", id: "question", maxlength: 2000, placeholder: "What do you want to know?" });
  const keep = h("input", { type: "number", id: "keep", min: 8, max: 8192, value: 96 });
  const layer = h("input", { type: "number", id: "layer", min: 0, placeholder: "middle" });
  const rule = h("select", { id: "rule" }, ["window", "logits", "softmax"].map((name) => h("option", {}, name)));
  const index = h("select", { id: "index", onchange: turn }, h("option", { value: "" }, "a text that I paste"), indexes.map((each) => h("option", { value: each.name }, `${each.name}: ${plural(each.documents, "document")}, ${each.tokens.toLocaleString("en")} tokens`)));
  const pasted = h("label", { for: "text" }, "Text", text);
  const own = [h("label", { for: "layer" }, "Filter layer", layer), h("label", { for: "rule" }, "Rule", rule)];
  // An index was made with one layer and one rule.
  function turn() {
    text.required = !index.value;
    question.required = Boolean(index.value);
    for (const each of [pasted, ...own]) each.hidden = Boolean(index.value);
    if (index.value && Number(keep.value) < 512) keep.value = 512;
  }
  const said = h("p", { class: "facts", role: "status" });
  const result = h("div", {});
  const button = h("button", { type: "submit", class: "primary" }, "Ask");
  let mine = null;
  const stop = live.watch(async (job) => {
    if (!job || job.id !== mine) return;
    said.textContent = live.over(job) ? job.message : job.said[job.said.length - 1] || (job.state === "waiting" ? "It waits for its turn." : "The worker is starting.");
    button.disabled = !live.over(job);
    if (job.state !== "complete") return;
    mine = null;
    fill(result, drawn(await get(`/api/jobs/${job.id}/result`)));
    result.firstChild.scrollIntoView({ block: "nearest" });
  });

  async function ask(event) {
    event.preventDefault();
    button.disabled = true;
    try {
      const shared = { question: question.value, keep: Number(keep.value) };
      const job = await post("/api/gemfilter", index.value ? { ...shared, index: index.value, new: 160 } : { ...shared, text: text.value, layer: layer.value === "" ? null : Number(layer.value), rule: rule.value });
      mine = job.id;
      live.note(job);
    } catch (error) {
      button.disabled = false;
      tell(error.message, true);
    }
  }

  fill(root,
    h("header", { class: "top" }, h("p", { class: "kicker" }, "Method"), h("h1", {}, "GemFilter"), h("p", { class: "question" }, "An early layer finds the tokens that matter; the model answers from those alone. See which ones it took.")),
    missing ? h("p", { class: "notice" }, `This page cannot be used here: ${missing}.`) : h("form", { class: "asking", onsubmit: ask },
      indexes.length ? h("label", { for: "index" }, "Asked about", index) : null, pasted, h("label", { for: "question" }, "Question", question),
      h("div", { class: "panel-fields" }, h("label", { for: "keep" }, "Tokens kept", keep), own),
      h("p", { class: "actions" }, button, h("span", { class: "what" }, `${model}, on this machine; a question waits behind runs that were asked for before`)), said),
    result);
  return stop;
}
