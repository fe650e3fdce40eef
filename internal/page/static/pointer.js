// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

import { barWidth, from, head, laneY, rowHeight } from "/draw.js";
import { because, causeText, changeText, clock, did, objectName, outcomeWords, span, writersOf } from "/format.js";
import { gutter } from "/gutter.js";
import { element } from "/rows.js";

/** Pointer is the mouse over the timeline. */
export class Pointer {
  constructor(timeline, open, say) {
    Object.assign(this, { timeline, open, say });
    this.tip = document.getElementById("tip");
    const box = timeline.box;
    box.addEventListener("pointermove", (event) => this.move(event));
    box.addEventListener("pointerleave", () => this.leave());
    box.addEventListener("pointerdown", (event) => this.down(event));
    box.addEventListener("pointerup", (event) => this.up(event));
    box.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
  }

  place(event) {
    const bounds = this.timeline.box.getBoundingClientRect();
    return { x: event.clientX - bounds.left - gutter, y: event.clientY - bounds.top };
  }

  /** find looks only through the row below the pointer, so that nothing has to be kept about where things were drawn. */
  find(x, y) {
    const { timeline } = this;
    const { axis, laneHeight, rows } = timeline;
    if (y < head || x < 0 || !laneHeight) return null;
    const tall = rowHeight(laneHeight);
    const index = Math.floor((y - head + timeline.scroll) / tall);
    const row = rows[index];
    if (!row) return null;
    const top = head + index * tall - timeline.scroll;
    let best = null;
    const near = (item, itemX, lane, width = 0) => {
      const dx = x < itemX ? itemX - x : Math.max(0, x - itemX - width);
      const far = dx + Math.abs(y - laneY(top, lane, laneHeight)) * 0.8;
      if (far < 14 && (!best || far < best.far)) best = { ...item, far };
    };
    for (let i = from(row.passes, axis.t(-60)); i < row.passes.length; i++) {
      const pass = row.passes[i];
      if (axis.x(pass.first) > timeline.width) break;
      near({ pass }, axis.x(pass.start), 2, barWidth(axis, pass));
      for (const cause of pass.causes) {
        if (cause.change) near({ pass, change: cause }, axis.x(cause.t), 0);
        near({ pass, cause }, axis.x(cause.t), 1);
      }
      for (const write of pass.writes) near({ pass, write }, axis.x(write.at), 3);
    }
    for (const change of row.loose) if (change.users === 0) near({ loose: change }, axis.x(change.t), 0);
    return best;
  }

  move(event) {
    const { x, y } = this.place(event);
    if (this.dragging) {
      const moved = event.clientX - this.dragging.x;
      if (this.dragging.far || Math.abs(moved) > 4) {
        this.dragging.far = this.timeline.held = true; // rows that come and go below a hand would be a nuisance
        this.timeline.box.classList.add("dragging");
        this.timeline.pan(moved);
        this.dragging.x = event.clientX;
      }
      return;
    }
    const found = this.find(x, y);
    const pass = found?.pass || null;
    if (pass !== this.timeline.hovered) {
      this.timeline.hovered = pass;
      this.timeline.touch();
    }
    this.show(found, x, y);
  }

  show(found, x, y) {
    this.tip.hidden = !found;
    if (!found) return;
    this.tip.replaceChildren(...describe(found));
    const { offsetWidth: w, offsetHeight: h } = this.tip;
    const box = this.timeline.box;
    this.tip.style.left = `${Math.max(4, Math.min(x + gutter + 14, box.clientWidth - w - 6))}px`;
    this.tip.style.top = `${y + 18 + h > box.clientHeight ? Math.max(4, y - h - 12) : y + 18}px`;
  }

  leave() {
    this.tip.hidden = true;
    if (!this.timeline.hovered) return;
    this.timeline.hovered = null;
    this.timeline.touch();
  }

  down(event) {
    if (event.button !== 0 || event.offsetX > this.timeline.scroller.clientWidth) return;
    this.dragging = { x: event.clientX };
    this.timeline.box.setPointerCapture(event.pointerId);
  }

  up(event) {
    const dragged = this.dragging?.far;
    this.dragging = null;
    this.timeline.held = false;
    this.timeline.box.classList.remove("dragging");
    if (dragged) return this.timeline.touch();
    const { x, y } = this.place(event);
    const found = this.find(x, y);
    if (found?.pass) this.open(found.pass);
  }

  wheel(event) {
    const { x } = this.place(event);
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.timeline.zoom(Math.exp(-event.deltaY * 0.004), Math.max(0, x));
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      this.timeline.pan(-(event.deltaX || event.deltaY));
    }
  }
}

function describe({ pass, cause, change, write, loose }) {
  const title = (text) => element("b", "", text);
  const line = (text) => element("div", "", text);
  if (loose) return [title(`${objectName(loose.object)} ${loose.raw.type}`), ...changeLines(loose.raw), line("No known reconcile followed it.")];
  if (change) return [title(`${objectName(change.raw.object)} ${change.raw.type}`), ...changeLines(change.raw), line(clock(change.t))];
  if (cause) return [title(`Event: ${cause.raw.type}`), line(causeText(cause.raw)), line(`waited ${span(pass.start - cause.t)}`)];
  if (write) {
    const lines = [title(`${write.raw.verb} ${write.raw.subresource || ""} ${objectName(write.raw.object)}`), line(`took ${span(write.end - write.at)}`)];
    if (write.raw.error) lines.push(line(`refused: ${write.raw.error}`));
    if (write.raw.noChange) lines.push(line("It changed nothing."));
    return lines;
  }
  const findings = (pass.raw.findings || []).map((f) => line(f.message));
  return [title(`${objectName(pass.object)} #${pass.id}: ${outcomeWords[pass.outcome] || pass.outcome}`), line(because(pass)), line(`${did(pass)}, ${span(pass.end - pass.start)}`), ...findings];
}

function changeLines(raw) {
  const lines = (raw.changes || []).slice(0, 4).map((c) => element("div", "", changeText(c)));
  const more = (raw.changed || 0) - lines.length;
  if (more > 0) lines.push(element("div", "", `and ${more} more`));
  const by = writersOf(raw);
  if (by) lines.unshift(element("div", "", `by ${by}`));
  return lines;
}
