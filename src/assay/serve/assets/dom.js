// Elements by function: h("p", { class: "facts" }, "text", child). Text is always text; markup only where it is named.

export function h(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "html") made.innerHTML = value; // the server makes it from escaped text
    else if (name === "value") made.value = value;
    else if (value === true) made.setAttribute(name, "");
    else made.setAttribute(name, value);
  }
  made.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

export function fill(element, ...children) {
  element.replaceChildren(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

const NS = "http://www.w3.org/2000/svg";
export function svg(tag, properties = {}, ...children) {
  const made = document.createElementNS(NS, tag);
  for (const [name, value] of Object.entries(properties)) if (value !== null) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// A small curve of numbers, the newest at the right.
export function spark(series, { width = 220, height = 44, ends = null } = {}) {
  const known = series.filter((value) => value !== null);
  const low = ends ? ends[0] : Math.min(...known), high = ends ? ends[1] : Math.max(...known), span = high - low || 1;
  const place = (value, i) => [(i / Math.max(1, series.length - 1)) * (width - 8) + 4, height - 5 - ((value - low) / span) * (height - 10)];
  const points = series.map((value, i) => (value === null ? null : place(value, i))).filter(Boolean);
  const drawn = svg("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true", preserveAspectRatio: "none" });
  if (points.length > 1) drawn.append(svg("polyline", { points: points.map((point) => point.map((x) => x.toFixed(1)).join(",")).join(" ") }));
  return drawn;
}

export function number(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text = size >= 1e5 || size < 1e-3 ? value.toExponential(2) : String(Number(value.toPrecision(4)));
  return text.replace("-", "−");
}

export function shown(value) {
  if (value === null || value === undefined) return "none";
  if (Array.isArray(value)) return value.length ? value.map(shown).join(", ") : "(none)";
  if (typeof value === "boolean") return value ? "yes" : "no";
  return typeof value === "number" ? number(value) : String(value);
}

export function duration(seconds) {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

export const plural = (count, thing) => `${count} ${thing}${count === 1 ? "" : "s"}`;

let clearing;
export function tell(sentence, bad = false) {
  const place = document.getElementById("told");
  place.textContent = sentence;
  place.classList.toggle("bad", bad);
  place.classList.add("seen");
  clearTimeout(clearing);
  clearing = setTimeout(() => place.classList.remove("seen"), 6000);
}
