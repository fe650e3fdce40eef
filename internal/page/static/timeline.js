// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

import { StepAxis, TimeAxis } from "/axis.js";
import { from, head, Painter, rowHeight } from "/draw.js";
import { objectKey } from "/format.js";
import { drawGutter, fitGutter, gutter } from "/gutter.js";
import { palette } from "/palette.js";
import { chain } from "/store.js";

const natural = new Intl.Collator("en", { numeric: true });

/** A row that would be lower than this is scrolled to instead; one that would be higher wastes room. */
const leastLane = 13;
const mostLane = 52;

/** Timeline draws the view and keeps up with it. */
export class Timeline {
  following = true;
  scale = "auto";
  steps = true;
  selected = null;
  hovered = null;
  dirty = true;
  cost = 0; // milliseconds that a drawing took lately
  all = []; // every row, in order
  rows = []; // those that are seen
  restarts = []; // times at which the operator was restarted
  scroll = 0;
  drawnAt = 0;
  drawnEnd = 0;

  until = 0; // when a recording has ended that is shown; 0 if time goes on
  live = true; // whether what happens arrives here
  looping = () => false; // whether a row's object is in a loop now

  constructor(view, forest, calm) {
    Object.assign(this, { view, forest, calm }); // calm: whether the user wants no motion
    this.box = document.getElementById("timeline");
    this.field = document.getElementById("field");
    this.gutter = document.getElementById("gutter");
    this.scroller = document.getElementById("timeline-scroll");
    this.time = new TimeAxis(15_000);
    this.step = new StepAxis();
    this.painter = new Painter();
    this.colours = palette();
    this.scroller.addEventListener("scroll", () => this.scrolled(), { passive: true });
    // Only to be scrolled in: what is scrolled to is reached by the arrows.
    this.scroller.addEventListener("focus", () => this.box.focus({ preventScroll: true }));
    new ResizeObserver(() => this.resize()).observe(this.box);
    this.resize();
  }

  get axis() {
    return this.steps ? this.step : this.time;
  }

  /** Where it is scrolled to is remembered: asking in the middle of a drawing would lay out the whole page first. */
  scrolled() {
    this.scroll = this.scroller.scrollTop;
    this.touch();
  }

  touch() {
    this.dirty = true;
    this.wake?.();
  }

  repaint() {
    this.colours = palette();
    this.touch();
  }

  resize() {
    const ratio = Math.min(2, devicePixelRatio || 1);
    fitGutter(this.box.clientWidth);
    this.width = Math.max(50, this.box.clientWidth - gutter);
    this.height = Math.max(50, this.box.clientHeight);
    this.ratio = ratio;
    const fit = (canvas, width, left) => {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(this.height * ratio);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${this.height}px`;
      canvas.style.left = `${left}px`;
    };
    fit(this.field, this.width, gutter);
    fit(this.gutter, gutter, 0);
    this.time.width = this.step.width = this.width;
    this.named = ""; // another size has emptied it
    this.touch();
  }

  /** layout puts the rows in order and decides how high they are. */
  layout() {
    this.forest.sort();
    if (this.laidOut === this.view.version && this.ordered === this.forest.version) return;
    if (this.ordered !== this.forest.version || this.all.length !== this.view.rows.size || this.all.some((row) => this.view.rows.get(row.key) !== row)) this.order();
    if (this.steps) this.step.build(this.view.passes, this.view.loose);
    this.laidOut = this.view.version;
  }

  /** order puts the rows in the order of the tree: what owns above what is owned. */
  order() {
    this.ordered = this.forest.version;
    this.all = [...this.view.rows.values()];
    for (const row of this.all) row.place = this.forest.placeOf(objectKey(row.object));
    const places = (a, b) => (a === b ? 0 : a - b);
    this.all.sort((a, b) => places(a.place.at, b.place.at) || a.place.below - b.place.below ||
      (a.object.namespace || "").localeCompare(b.object.namespace || "") || (a.object.kind || "").localeCompare(b.object.kind || "") ||
      natural.compare(a.object.name, b.object.name) || a.controller.localeCompare(b.controller));
    this.named = "";
  }

  /** fitRows shows the rows in which something is in sight, as high as there is room. */
  fitRows() {
    const first = this.axis.t(0);
    const last = this.axis.t(this.width);
    const kept = this.held ? new Set(this.rows) : null;
    this.rows = this.all.filter((row) => {
      if (kept?.has(row) || row.key === this.selected?.key) return true;
      const at = from(row.passes, first);
      return row.passes[at]?.first <= last || row.loose.some((change) => change.users === 0 && change.t >= first && change.t <= last);
    });
    const room = this.height - head - 8;
    const lane = Math.floor((room / Math.max(1, this.rows.length) - 14) / 4);
    this.laneHeight = Math.max(leastLane, Math.min(mostLane, lane));
    const total = `${head + this.rows.length * rowHeight(this.laneHeight)}px`;
    const inner = this.scroller.firstElementChild;
    if (inner.style.height !== total) inner.style.height = total;
  }

  /** chooseScale lets the automatic scale show steps while it is quiet, and time while steps would race past. */
  chooseScale(passesPerSecond) {
    const before = this.steps;
    if (this.scale !== "auto") this.steps = this.scale === "steps";
    else if (passesPerSecond > 12) this.steps = false;
    else if (passesPerSecond < 4) this.steps = true;
    if (before !== this.steps) {
      this.laidOut = -1;
      this.toLatest();
    }
  }

  /**
   * frame is called once for each frame and returns whether it wants another. While it follows, what was drawn is moved,
   * which is cheap. It is redrawn when something is new, and less often the longer that takes.
   */
  frame(now) {
    const changed = this.dirty || this.drawnVersion !== this.view.version;
    let moving = false;
    if (this.following && !this.steps && this.live) {
      const end = (this.until || Date.now()) + this.time.range * 0.02;
      this.time.end = this.calm() ? Math.ceil(end / 1000) * 1000 : end;
      moving = this.all.length > 0 && !document.hidden;
    }
    const drift = this.steps ? 0 : (this.drawnEnd - this.time.end) * this.time.scale;
    const pause = this.dirty ? 0 : Math.min(250, this.cost * 8);
    if ((changed || Math.abs(drift) > 24) && now - this.drawnAt >= pause) moving = this.draw(now) || moving;
    else {
      this.field.style.transform = drift ? `translateX(${drift}px)` : "";
      moving = moving || changed;
    }
    return moving;
  }

  draw(now) {
    const began = performance.now();
    this.layout();
    if (this.jumping) this.jump();
    const moving = this.steps && this.following && this.glide();
    this.fitRows();
    const scene = {
      axis: this.axis, colours: this.colours, width: this.width, height: this.height, laneHeight: this.laneHeight, rows: this.rows, restarts: this.restarts, several: this.view.store.several,
      scroll: this.scroll, selected: this.selected, radius: this.laneHeight >= 20 ? 5 : 3.5,
      chain: this.outstanding(), depthOf: (row) => row.place?.depth || 0, looping: (row) => this.looping(row),
    };
    const g = this.field.getContext("2d", { alpha: false });
    g.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    this.painter.paint(g, scene);
    this.drawGutter(scene);
    this.field.style.transform = "";
    this.drawnAt = now;
    this.drawnEnd = this.time.end;
    this.drawnVersion = this.view.version;
    this.dirty = moving;
    this.cost = 0.7 * this.cost + 0.3 * (performance.now() - began);
    return moving;
  }

  /** outstanding is what stands out, while the rest is pale: nothing if none of it is in sight any more. */
  outstanding() {
    const of = this.hovered || this.selected;
    if (!of) return null;
    const found = chain(of);
    for (const pass of found) if (this.axis.x(pass.end) > 0 && this.axis.x(pass.first) < this.width) return found;
    return null;
  }

  /** drawGutter draws the names only if they are others than before: text takes longer than anything else. */
  drawGutter(scene) {
    const { rows, scroll, laneHeight, selected, width, height } = scene;
    let named = `${scroll} ${laneHeight} ${selected?.key} ${width} ${height} ${scene.several} ${this.colours.text}`;
    for (const row of rows) named += ` ${row.key} ${this.looping(row)} ${row.noops}`;
    if (named === this.named) return;
    this.named = named;
    const g = this.gutter.getContext("2d");
    g.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    drawGutter(g, scene);
  }

  /** toLatest shows the latest at the next drawing, without running there. */
  toLatest() {
    this.jumping = true;
    this.touch();
  }

  jump() {
    this.jumping = false;
    this.step.offset = this.step.rest;
    const last = this.view.passes.at(-1);
    const seen = last && this.time.x(last.end) > 0 && this.time.x(last.end) < this.width;
    if (last && !seen && !this.following) this.time.end = last.end + this.time.range * 0.1;
  }

  /** glide moves the steps towards the latest and returns whether they are still on their way. */
  glide() {
    const left = this.step.rest - this.step.offset;
    if (this.calm() || !Number.isFinite(left) || Math.abs(left) > 3 * this.width || Math.abs(left) < 1) {
      this.step.offset = this.step.rest;
      return false;
    }
    this.step.offset += left * 0.2;
    return true;
  }

  select(pass, reveal) {
    this.selected = pass;
    if (pass && reveal) this.reveal(pass);
    this.touch();
  }

  reveal(pass) {
    this.layout();
    if (this.jumping) this.jump();
    // What follows is in sight at the latest when it has come to rest, and needs no room for what comes after it.
    const x = this.following && this.steps ? this.step.placeOf(pass.start) - this.step.rest : this.axis.x(pass.start);
    if (!(x > 40 && x < this.width - (this.following ? 0 : 60))) {
      this.follow(false);
      this.axis.show(pass.start);
    }
    this.fitRows();
    const tall = rowHeight(this.laneHeight);
    const top = this.rows.findIndex((r) => r.key === pass.key) * tall;
    const visible = this.height - head;
    if (top < 0 || (top >= this.scroll && top + tall <= this.scroll + visible)) return;
    this.scroller.scrollTop = top - visible / 3;
    this.scrolled();
  }

  follow(on) {
    if (this.following === on) return;
    this.following = on;
    this.onFollow?.(on);
    this.touch();
  }

  pan(pixels) {
    this.follow(false);
    this.axis.pan(pixels);
    this.touch();
  }

  zoom(factor, x = this.width / 2) {
    if (this.following && !this.steps) {
      this.time.range = Math.max(20, Math.min(3_600_000, this.time.range / factor));
    } else this.axis.zoom(factor, x);
    this.touch();
  }
}
