// Neurons as points in a disk, drawn on a canvas; the one under the pointer is told.

const NEAR = 16; // pixels from a point that still mean it
const TRAIL = 4; // looks back that a trail reaches

export class Disk {
  constructor(data, pick) {
    this.data = data;
    this.canvas = document.createElement("canvas");
    this.canvas.className = "disk";
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", `${data.neurons} neurons of ${data.label} over training`);
    const all = [...data.x.flat(), ...data.y.flat(), ...data.landmarks.flatMap((mark) => mark.at)].filter((value) => value !== null).map(Math.abs);
    this.reach = Math.max(...all, 1e-9);
    this.round = this.reach <= 1.0001; // directions on a sphere: draw its outline
    this.pinned = false;
    this.canvas.addEventListener("pointermove", (event) => this.pinned || pick(this.under(event)));
    this.canvas.addEventListener("pointerleave", () => this.pinned || pick(null));
    this.canvas.addEventListener("click", (event) => {
      const found = this.under(event);
      this.pinned = found !== null;
      pick(found);
    });
  }

  fit() {
    const size = Math.round(this.canvas.parentElement.clientWidth), ratio = window.devicePixelRatio || 1;
    this.size = size;
    this.canvas.width = this.canvas.height = Math.round(size * ratio);
    this.pen = this.canvas.getContext("2d");
    this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    const style = getComputedStyle(document.documentElement);
    this.colour = (name) => style.getPropertyValue(`--${name}`).trim();
  }

  place(x, y) {
    const half = this.size / 2, scale = (half - 26) / (this.round ? 1 : this.reach);
    return [half + x * scale, half - y * scale];
  }

  // Where a neuron is between two looks.
  at(i, time) {
    const low = Math.floor(time), high = Math.min(low + 1, this.data.steps.length - 1), part = time - low;
    const mix = (values) => values[low][i] * (1 - part) + values[high][i] * part;
    return this.place(mix(this.data.x), mix(this.data.y));
  }

  under(event) {
    const box = this.canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    let best = null, nearest = NEAR ** 2;
    for (let i = 0; i < this.data.neurons; i++) {
      const [px, py] = this.at(i, this.time), away = (px - x) ** 2 + (py - y) ** 2;
      if (away < nearest) [best, nearest] = [i, away];
    }
    return best;
  }

  draw({ at, colour, neuron }) {
    this.time = at;
    const pen = this.pen, size = this.size;
    pen.clearRect(0, 0, size, size);
    this.frame();
    const shade = this.shades(colour, at);
    for (let i = 0; i < this.data.neurons; i++) this.trail(i, at, shade(i), i === neuron);
    for (let i = 0; i < this.data.neurons; i++) this.point(i, at, shade(i), neuron === null ? 0.85 : i === neuron ? 1 : 0.3, 4.2);
    this.landmarks();
    if (neuron !== null && neuron < this.data.neurons) {
      this.point(neuron, at, shade(neuron), 1, 7);
      const [x, y] = this.at(neuron, at);
      pen.globalAlpha = 1;
      pen.strokeStyle = this.colour("ink");
      pen.lineWidth = 2;
      pen.beginPath();
      pen.arc(x, y, 9, 0, 2 * Math.PI);
      pen.stroke();
    }
    pen.globalAlpha = 1;
  }

  frame() {
    const pen = this.pen, [cx, cy] = this.place(0, 0), [right] = this.place(this.round ? 1 : this.reach, 0);
    pen.lineWidth = 1;
    pen.globalAlpha = 1;
    pen.strokeStyle = this.colour("line");
    pen.beginPath();
    pen.moveTo(2 * cx - right, cy);
    pen.lineTo(right, cy);
    pen.moveTo(cx, 2 * cy - right);
    pen.lineTo(cx, right);
    pen.stroke();
    if (!this.round) return;
    pen.fillStyle = this.colour("raised");
    pen.globalAlpha = 0.6;
    pen.beginPath();
    pen.arc(cx, cy, right - cx, 0, 2 * Math.PI);
    pen.fill();
    pen.globalAlpha = 1;
    pen.strokeStyle = this.colour("strong-line");
    pen.stroke();
  }

  landmarks() {
    const pen = this.pen;
    pen.globalAlpha = 1;
    pen.font = "600 12px Inter, -apple-system, 'Segoe UI', Roboto, sans-serif";
    for (const { name, at } of this.data.landmarks) {
      const [x, y] = this.place(...at);
      pen.strokeStyle = this.colour("ink");
      pen.lineWidth = 2.2;
      pen.beginPath();
      for (const [dx, dy] of [[6, 6], [6, -6]]) {
        pen.moveTo(x - dx, y - dy);
        pen.lineTo(x + dx, y + dy);
      }
      pen.stroke();
      pen.fillStyle = this.colour("ink");
      pen.textAlign = x > this.size * 0.66 ? "right" : x < this.size * 0.34 ? "left" : "center";
      pen.fillText(name, x + (pen.textAlign === "right" ? 14 : pen.textAlign === "left" ? -14 : 0), y - 40);
    }
  }

  trail(i, at, colour, chosen) {
    const from = Math.max(0, at - (chosen ? this.data.steps.length : TRAIL));
    if (at - from < 0.01) return;
    const pen = this.pen;
    pen.strokeStyle = colour;
    pen.globalAlpha = chosen ? 0.9 : 0.2;
    pen.lineWidth = chosen ? 1.8 : 1;
    pen.beginPath();
    pen.moveTo(...this.at(i, from));
    for (let look = Math.floor(from) + 1; look < at; look++) pen.lineTo(...this.at(i, look));
    pen.lineTo(...this.at(i, at));
    pen.stroke();
  }

  point(i, at, colour, alpha, radius) {
    const pen = this.pen, [x, y] = this.at(i, at);
    pen.globalAlpha = alpha;
    pen.fillStyle = colour;
    pen.beginPath();
    pen.arc(x, y, radius, 0, 2 * Math.PI);
    pen.fill();
  }

  // Two colours, one for each sign, stronger the farther from nothing.
  shades(probe, at) {
    const looks = this.data.probes[probe];
    if (!looks) return () => this.colour("accent");
    const values = looks[Math.round(at)], sizes = values.filter((value) => value !== null).map(Math.abs);
    const most = probe === "cosine" ? 1 : Math.max(...sizes, 1e-12);
    const [positive, negative, none] = ["accent", "fails", "faint"].map(this.colour);
    return (i) => (values[i] === null ? none : blend(none, values[i] < 0 ? negative : positive, Math.min(1, Math.abs(values[i]) / most)));
  }
}

function blend(a, b, part) {
  const [first, second] = [a, b].map((text) => [1, 3, 5].map((i) => parseInt(text.slice(i, i + 2), 16)));
  return `rgb(${first.map((value, i) => Math.round(value + (second[i] - value) * part)).join(",")})`;
}
