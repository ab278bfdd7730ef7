// One parameter as a field: the right control for its kind, its range in words, and a way back to the preset's value.

import { h, number, shown } from "./dom.js";

function range(spec) {
  const low = spec.minimum ?? spec.above, high = spec.maximum ?? spec.below;
  const parts = [];
  if (spec.above !== undefined) parts.push(`above ${number(spec.above)}`);
  else if (spec.minimum !== undefined) parts.push(`from ${number(spec.minimum)}`);
  if (spec.below !== undefined) parts.push(`below ${number(spec.below)}`);
  else if (spec.maximum !== undefined) parts.push(`to ${number(spec.maximum)}`);
  return { low, high, words: parts.join(", ") };
}

const read = {
  int: (text) => (/^[+-]?\d+$/.test(text) ? Number(text) : text),
  float: (text) => (text !== "" && Number.isFinite(Number(text)) ? Number(text) : text),
  text: (text) => text,
  choice: (text) => text,
  bool: (text) => ["true", "yes", "1"].includes(text.toLowerCase()),
};

function several(text, items) {
  const parts = text.split(items.kind === "list" ? ";" : ",").map((part) => part.trim()).filter(Boolean);
  return parts.map(items.kind === "list" ? (part) => several(part, items.items) : read[items.kind] || read.text);
}

export function field(spec, changed) {
  const id = `parameter-${spec.name}`;
  const { low, high, words } = range(spec);
  const control = make(spec, id, low, high, changed);
  const back = h("button", { type: "button", class: "back", hidden: true, title: "Back to the preset's value", "aria-label": `Reset ${spec.name}`, onclick: () => (control.set(usual), changed(undefined)) }, "↺");
  let usual;
  const hint = [spec.kind === "list" && !control.boxes ? (spec.items.kind === "list" ? "lists with commas, semicolons between them" : "several, with commas between") : "", spec.optional ? "empty: none" : "", words || (spec.items ? range(spec.items).words : "")].filter(Boolean).join(" · ");
  const element = h("div", { class: "field", "data-words": `${spec.name} ${spec.description}`.toLowerCase() },
    h("label", { for: id }, h("span", { class: "name" }, (spec.label || spec.name).replaceAll("_", " ")), h("span", { class: "words" }, spec.description)),
    h("div", { class: "control" }, control.element, back),
    hint ? h("span", { class: "hint" }, hint) : h("span", {}));
  return {
    element,
    set: control.set,
    mark(isChanged, value) {
      usual = value;
      element.classList.toggle("changed", isChanged);
      back.hidden = !isChanged;
      back.title = `Back to the preset's ${shown(value)}`;
    },
  };
}

function make(spec, id, low, high, changed) {
  if (spec.kind === "bool") {
    const box = h("input", { type: "checkbox", id, onchange: () => changed(box.checked) });
    return { element: box, set: (value) => (box.checked = Boolean(value)) };
  }
  if (spec.kind === "choice") {
    const list = h("select", { id, onchange: () => changed(spec.optional && list.value === "" ? null : spec.choices.find((choice) => String(choice) === list.value)) },
      spec.optional ? h("option", { value: "" }, "none") : null, spec.choices.map((choice) => h("option", { value: String(choice) }, shown(choice))));
    return { element: list, set: (value) => (list.value = value === null ? "" : String(value)) };
  }
  if (spec.kind === "list" && spec.items.kind === "choice") return boxes(spec, id, changed);
  if (spec.kind === "list") {
    const text = h("input", { type: "text", id, onchange: () => changed(spec.optional && text.value.trim() === "" ? null : several(text.value, spec.items)) });
    return { element: text, set: (value) => (text.value = (value || []).map((each) => (Array.isArray(each) ? each.join(", ") : each)).join(spec.items.kind === "list" ? "; " : ", ")) };
  }
  const numeric = spec.kind === "int" || spec.kind === "float";
  const attributes = numeric ? { type: "number", step: spec.kind === "int" ? 1 : "any", inputmode: spec.kind === "int" ? "numeric" : "decimal", min: spec.minimum, max: spec.maximum } : { type: "text", maxlength: 2000 };
  const take = (text) => (spec.optional && text.trim() === "" ? null : (read[spec.kind] || read.text)(text.trim()));
  const input = h("input", { id, ...attributes, onchange: () => (slide(), changed(take(input.value))) });
  const bounded = numeric && low !== undefined && high !== undefined && high > low;
  const slider = bounded ? h("input", { type: "range", min: low, max: high, step: spec.kind === "int" ? 1 : (high - low) / 100, "aria-label": spec.name, oninput: () => (input.value = Number(Number(slider.value).toPrecision(4))), onchange: () => changed(take(input.value)) }) : null;
  function slide() {
    if (slider && input.value !== "") slider.value = input.value;
  }
  const set = (value) => {
    input.value = value === null || value === undefined ? "" : value;
    slide();
  };
  return { element: slider ? h("span", { class: "slid" }, input, slider) : input, set };
}

function boxes(spec, id, changed) {
  const all = spec.items.choices.map((choice, i) => ({ choice, box: h("input", { type: "checkbox", id: i ? null : id, onchange: tell }) }));
  function tell() {
    changed(all.filter(({ box }) => box.checked).map(({ choice }) => choice));
  }
  const element = h("span", { class: "boxes" }, all.map(({ choice, box }) => h("label", {}, box, shown(choice))));
  return { element, boxes: true, set: (value) => all.forEach(({ choice, box }) => (box.checked = (value || []).includes(choice))) };
}
