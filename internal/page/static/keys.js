// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

import { openHelp } from "/help.js";
import { recall } from "/settings.js";

const byId = (id) => document.getElementById(id);
const focus = (id) => byId(id).focus();

/** What has to be seen before it can have the focus. */
const viewOf = { tree: "side", "tree-search": "side", timeline: "timeline", list: "list", traffic: "traffic", rights: "rights" };

/**
 * listenToKeys makes everything reachable without a mouse. Keys typed into a field are ignored, and so are
 * all single keys if the user turned them off: speech input types many keys by accident.
 */
export function listenToKeys(app) {
  const { timeline, list, controls } = app;
  const step = (by) => {
    const pass = list.step(by);
    if (pass) app.select(pass, true);
  };
  const go = (id) => {
    if (viewOf[id] === "side" && app.details.pass) app.close(); // it lies above the tree
    if (byId("stages").querySelector(`[data-stage=${id}]`)?.hidden) return; // there is nothing of it
    if (viewOf[id]) controls.view(viewOf[id]);
    if (id === "rights") byId("rights").querySelector("[data-cell]")?.focus();
    if (id === "search") controls.openFilters(true);
    focus(id);
  };
  const acts = {
    j: () => step(1), k: () => step(-1), Enter: () => app.selected && app.open(app.selected, true),
    "/": () => go("search"), o: () => go("tree-search"), f: () => timeline.follow(!timeline.following),
    "+": () => timeline.zoom(1.5), "=": () => timeline.zoom(1.5), "-": () => timeline.zoom(1 / 1.5), "−": () => timeline.zoom(1 / 1.5),
    "[": () => timeline.pan(160), "]": () => timeline.pan(-160), s: () => controls.scale(timeline.steps ? "time" : "steps"),
    l: () => controls.toggleFinding("loop"), n: () => controls.toggleFinding("noop"), 1: () => go("tree"), 2: () => go("timeline"),
    3: () => go("list"), 4: () => go("traffic"), 5: () => go("rights"), T: () => controls.tab(document.getElementById("panel-totals").hidden ? "tab-totals" : "tab-list"),
    d: () => controls.nextTheme(), "?": openHelp, Escape: () => escape(app),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || document.getElementById("help").open) return;
    const field = event.target.closest("input, select, textarea");
    if (field) {
      if (event.key === "Escape") {
        event.preventDefault();
        controls.leave(field);
      }
      return;
    }
    if (event.key === "Enter" && event.target.closest("button, a, [role=separator]")) return;
    const act = acts[event.key];
    if (!act || (event.key.length === 1 && recall("keys") === "off")) return;
    event.preventDefault();
    act();
  });
  timeline.box.addEventListener("keydown", (event) => walk(event, app));
}

function escape(app) {
  if (app.details.pass) app.close();
  else if (app.selected) app.select(null);
  else if (document.body.dataset.stage === "traffic" && app.traffic.leave()) return;
  else if (document.body.dataset.stage === "rights" && app.rights.leave()) return;
  else if (app.treeView.chosen) app.choose(null);
  else if (app.filter.active || app.treeView.text) app.controls.clear();
}

/** walk goes through the timeline: along a row, and from row to row to what is nearest in time. */
function walk(event, app) {
  const { timeline } = app;
  const rows = timeline.all;
  const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1], Home: [-Infinity, 0], End: [Infinity, 0] }[event.key];
  if (!by || event.ctrlKey || event.metaKey || event.altKey || rows.length === 0) return;
  event.preventDefault();
  event.stopPropagation();
  const at = rows.findIndex((row) => row.key === app.selected?.key);
  if (at < 0) return app.select(rows.find((r) => r.passes.length > 0)?.passes.at(-1) || null, true);
  const row = rows[at];
  if (by[0] !== 0) {
    const next = Math.max(0, Math.min(row.passes.length - 1, row.passes.indexOf(app.selected) + by[0]));
    return app.select(row.passes[next], true);
  }
  for (let i = at + by[1]; i >= 0 && i < rows.length; i += by[1]) {
    if (rows[i].passes.length === 0) continue;
    const near = rows[i].passes.reduce((a, b) => (Math.abs(b.start - app.selected.start) < Math.abs(a.start - app.selected.start) ? b : a));
    return app.select(near, true);
  }
}
