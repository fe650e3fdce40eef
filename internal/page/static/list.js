// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

import { because, clock, did, findingWords, outcomeWords, placedName, span } from "/format.js";
import { attribute, element, Rows, set } from "/rows.js";

/** List shows the reconciles of the timeline in words, the latest first. */
export class List {
  constructor(view, open, select) {
    Object.assign(this, { view, open, select });
    this.box = document.getElementById("list");
    this.selected = null;
    const narrow = matchMedia("(max-width: 720px)");
    const height = () => (narrow.matches ? 48 : 28); // two lines, where there is no room for columns
    this.rows = new Rows(this.box, height(), makeRow, (row, pass, at) => this.fill(row, pass, at));
    narrow.addEventListener("change", () => this.rows.resize(height()));
    this.box.addEventListener("click", (event) => {
      const pass = this.rows.items[this.rows.at(event)];
      if (pass) this.open(pass);
    });
    this.box.addEventListener("keydown", (event) => this.press(event));
    this.box.addEventListener("focus", () => {
      if (!this.selected && this.rows.items.length > 0) this.move(0);
    });
  }

  render() {
    const { top } = this.rows;
    const anchor = top > 0 ? this.rows.items[Math.floor(top / this.rows.height)] : null;
    const items = this.view.passes.toReversed();
    this.rows.active = this.selected ? items.indexOf(this.selected) : -1;
    this.rows.show(items);
    // A user who has scrolled down is reading, so the lines must not move.
    if (anchor) {
      const now = items.indexOf(anchor);
      if (now >= 0 && now * this.rows.height + (top % this.rows.height) !== top) this.box.scrollTop = now * this.rows.height + (top % this.rows.height);
    }
  }

  choose(pass, reveal) {
    this.selected = pass;
    this.rows.active = pass ? this.rows.items.indexOf(pass) : -1;
    if (pass && reveal && this.rows.active >= 0) this.rows.moveTo(this.rows.active);
    else this.rows.draw();
  }

  /** step goes to an older or newer reconcile and returns it. */
  step(by) {
    if (this.rows.items.length === 0) return null;
    const at = this.selected ? this.rows.items.indexOf(this.selected) : -1;
    return this.rows.items[Math.max(0, Math.min(this.rows.items.length - 1, at + by))];
  }

  move(index) {
    const pass = this.rows.items[Math.max(0, Math.min(this.rows.items.length - 1, index))];
    if (pass) this.select(pass);
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = this.rows.active;
    const act = {
      ArrowDown: () => this.move(at + 1), ArrowUp: () => this.move(at - 1), Home: () => this.move(0), End: () => this.move(this.rows.items.length - 1),
      PageDown: () => this.move(at + this.rows.page), PageUp: () => this.move(at - this.rows.page),
      Enter: () => this.selected && this.open(this.selected, true), " ": () => this.selected && this.open(this.selected, true),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  }

  fill(row, pass, at) {
    const { several } = this.view.store;
    attribute(row, "aria-selected", pass === this.selected);
    attribute(row, "aria-setsize", this.rows.items.length);
    attribute(row, "aria-posinset", at + 1);
    if (row.pass === pass && row.placed === several) return;
    row.pass = pass;
    row.placed = several;
    const [time, object, reason, then, took] = row.children;
    set(time, clock(pass.start));
    const place = several && pass.object.namespace ? element("span", "place", `${pass.object.namespace}/`) : "";
    attribute(object, "title", placedName(pass.object, true));
    object.replaceChildren(place, element("b", "", pass.object.name), " ", element("span", "kind", pass.object.kind || ""));
    set(reason, because(pass));
    set(took, span(pass.end - pass.start));
    row.classList.toggle("noop", pass.noop);
    row.classList.toggle("loop", pass.loop);
    const parts = [];
    if (pass.outcome !== "succeeded") parts.push(element("span", `outcome ${pass.outcome}`, outcomeWords[pass.outcome] || pass.outcome));
    for (const finding of pass.findings) parts.push(element("span", `mark ${finding === "self-inflicted" ? "self" : finding}`, `${finding === "loop" ? "∞ " : ""}${findingWords[finding] || finding}`));
    if (pass.written > 0 || parts.length === 0) parts.unshift(element("span", "did", did(pass)));
    attribute(then, "title", parts.map((part) => part.textContent).join(", "));
    then.replaceChildren(...parts);
  }
}

function makeRow(index) {
  const row = element("div", "");
  row.id = `reconcile-${index}`;
  row.setAttribute("role", "option");
  row.append(element("span", "time"), element("span", "object"), element("span", "because"), element("span", "then"), element("span", "took"));
  return row;
}
