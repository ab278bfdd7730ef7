// The front door: which view an address means, and what the bar shows.

import { fill, h } from "./dom.js";
import * as live from "./live.js";

const VIEWS = {
  "": () => import("./home.js"),
  study: () => import("./study.js"),
  job: () => import("./job.js"),
  runs: () => import("./runs.js"),
  run: () => import("./run.js"),
  compare: () => import("./compare.js"),
  explore: () => import("./explore.js"),
  maps: () => import("./maps.js"),
  gemfilter: () => import("./gemfilter.js"),
};

const main = document.getElementById("content");
let leave = null;
let turn = 0;

async function show() {
  if (location.hash === "#content") return main.focus();
  const mine = ++turn;
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/").map(decodeURIComponent);
  if (leave) leave();
  leave = null;
  document.title = "Assay, the live lab";
  for (const link of document.querySelectorAll(".bar .links a")) {
    const own = link.getAttribute("href").replace(/^#\/?/, "");
    const here = own === name || (own === "" && name === "study") || (own === "runs" && ["run", "job", "compare"].includes(name));
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const root = h("div", { class: "view" });
  fill(main, root);
  window.scrollTo(0, 0);
  try {
    const view = VIEWS[name];
    if (!view) throw new Error("There is no such page.");
    const { show: draw } = await view();
    if (mine !== turn) return;
    root.append(h("p", { class: "waiting" }, "…"));
    const done = await draw(root, rest, new URLSearchParams(query || ""));
    if (mine !== turn) return done && done();
    leave = done || null;
  } catch (error) {
    if (mine !== turn) return;
    fill(root, h("header", { class: "top" }, h("h1", {}, "This did not work")), h("p", { class: "notice" }, error.message), h("p", {}, h("a", { href: "#/" }, "Back to the studies")));
  }
  main.dataset.shown = location.hash || "#/";
}

// The job at work, in the bar of every page.
const now = document.getElementById("now");
live.watch(() => {
  const open = live.all().filter((job) => !live.over(job));
  const running = open.find((job) => job.state === "running");
  now.hidden = !open.length;
  if (!open.length) return;
  const waiting = open.length - (running ? 1 : 0);
  now.href = `#/job/${(running || open[open.length - 1]).id}`;
  const share = running ? Math.round(100 * running.share) : 0;
  fill(now, h("span", { class: "pulse", "aria-hidden": "true" }), `${running ? `${share} %` : "waiting"}${waiting && running ? ` · ${waiting} more` : ""}`);
  now.setAttribute("aria-label", `A job is at work, ${share} percent done`);
});

live.connect();
window.addEventListener("hashchange", show);
show();
