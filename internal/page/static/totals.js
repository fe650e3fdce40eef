// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

import { number } from "/format.js";
import { element } from "/rows.js";

const refreshEvery = 2000;

/** Totals counts what is shown here per cause, and asks the recorder about everything since it began. */
export class Totals {
  constructor(view) {
    this.view = view;
    this.box = document.getElementById("panel-totals");
  }

  open() {
    this.close();
    this.draw();
    this.ask();
    this.timer = setInterval(() => document.hidden || this.ask(), refreshEvery);
  }

  close() {
    clearInterval(this.timer);
  }

  async ask() {
    try {
      const answer = await fetch("/why/summary");
      this.summary = answer.ok ? await answer.json() : null;
    } catch {
      this.summary = null; // the connection's state is shown elsewhere
    }
    this.draw();
  }

  draw() {
    const parts = [this.shown()];
    for (const controller of this.summary?.controllers || []) parts.push(section(controller));
    this.box.replaceChildren(...parts);
  }

  /** shown counts what the filters leave. */
  shown() {
    const causes = {};
    let writes = 0;
    let events = 0;
    for (const pass of this.view.passes) {
      writes += pass.written;
      events += pass.folded;
      for (const cause of pass.causes) causes[cause.raw.type] = (causes[cause.raw.type] || 0) + 1;
    }
    const { loop = 0, noop = 0, "self-inflicted": self = 0 } = this.view.counts;
    return element("section", "", element("h3", "", "Shown on this page"), bars(causes),
      figures([["Reconciles", this.view.passes.length], ["Events", events], ["Writes", writes], ["No-ops", noop], ["Self-inflicted", self], ["In loops", loop]]));
  }
}

function section(c) {
  const rows = [
    ["Reconciles", c.reconciles], ["Reconciles saved by folding", c.folded], ["Writes", c.writes], ["Writes that changed nothing", c.noChange], ["No-ops", c.noop], ["Self-inflicted", c.selfInflicted],
    ["In loops", c.loops], ["Changes by users", c.userChanges], ["Reconciles per change", c.reconcilesPerChange], ["Writes per change", c.writesPerChange],
    ["Events without a reconcile", c.filtered],
  ];
  return element("section", "", element("h3", "", `Controller ${c.name} since its start`), bars(c.causes || {}), figures(rows));
}

function bars(causes) {
  const box = element("div", "bars");
  const most = Math.max(1, ...Object.values(causes));
  for (const [cause, count] of Object.entries(causes).sort((a, b) => b[1] - a[1])) {
    const bar = element("i", "");
    bar.style.width = `${(100 * count) / most}%`;
    box.append(element("span", "", cause), bar, element("span", "n", number(count)));
  }
  if (box.children.length === 0) box.append(element("span", "", "nothing yet"));
  return box;
}

function figures(rows) {
  const list = element("dl", "");
  for (const [term, value] of rows) {
    if (typeof value !== "number") continue;
    list.append(element("dt", "", term), element("dd", "", number(Math.round(value * 100) / 100)));
  }
  return list;
}
