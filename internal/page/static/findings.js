// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

import { objectKey } from "/format.js";
import { element, set } from "/rows.js";

/** How many findings are shown at a time; the others are counted. */
const shown = 3;

const words = { loop: "∞ Loop", failing: "✕ Failing", hot: "▲ Hot" };

/** Findings shows the current findings at the top, with the same messages as the terminal. */
export class Findings {
  list = [];
  looping = new Set(); // keys of objects in loops, and of what they belong to
  rows = new Set(); // keys of rows, each of a controller and an object

  constructor(forest, open) {
    Object.assign(this, { forest, open });
    this.box = document.getElementById("found");
  }

  /** take shows findings and returns sentences that were not there before. */
  take(list) {
    const before = new Set(this.list.map(nameOf));
    this.list = list || [];
    this.rows = new Set(this.list.filter((f) => f.type === "loop").map((f) => `${f.controller}|${objectKey(f.object)}`));
    this.mark();
    this.draw();
    return this.list.filter((f) => !before.has(nameOf(f))).map((f) => f.sentence);
  }

  /** mark finds the objects that have a loop somewhere below them. */
  mark() {
    this.looping.clear();
    for (const { type, object } of this.list) {
      if (type !== "loop") continue;
      for (let node = this.forest.byKey.get(objectKey(object)); node; node = node.parent) this.looping.add(node.key);
    }
  }

  draw() {
    const lines = this.list.slice(0, shown);
    while (this.box.children.length > lines.length) this.box.lastElementChild.remove();
    lines.forEach((finding, i) => {
      let line = this.box.children[i];
      if (!line) {
        line = element("button", "", element("b", ""), element("span", ""));
        line.type = "button";
        line.addEventListener("click", () => this.open(line.finding.object));
        this.box.append(line);
      }
      line.finding = finding;
      const more = i === shown - 1 && this.list.length > shown ? ` And ${this.list.length - shown} more.` : "";
      set(line.firstElementChild, words[finding.type] || finding.type);
      set(line.lastElementChild, finding.sentence + more);
    });
    this.box.hidden = lines.length === 0;
  }
}

const nameOf = (f) => `${f.type} ${f.controller} ${objectKey(f.object)}`;
