// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

import { clock, span } from "/format.js";

/** TimeAxis gives every second the same width. */
export class TimeAxis {
  constructor(range) {
    this.range = range; // milliseconds that are seen at once
    this.end = 0; // the time at the right edge
    this.width = 1;
  }

  get scale() {
    return this.width / this.range;
  }

  x(t) {
    return (t - this.end + this.range) * this.scale;
  }

  t(x) {
    return this.end - this.range + x / this.scale;
  }

  pan(pixels) {
    this.end -= pixels / this.scale;
  }

  zoom(factor, x) {
    const fixed = this.t(x);
    this.range = Math.max(20, Math.min(3_600_000, this.range / factor));
    this.end += fixed - this.t(x);
  }

  show(t) {
    this.end = t + this.range / 2;
  }

  /** ticks are the lines across the rows, with what stands above them. */
  ticks() {
    const least = 110 / this.scale;
    const step = niceSteps.find((s) => s >= least) || 3_600_000;
    const result = [];
    for (let t = Math.ceil(this.t(-50) / step) * step; t < this.end + 50 / this.scale; t += step) result.push({ x: this.x(t), text: clock(t, step < 1000) });
    return result;
  }
}

const niceSteps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000];

/** How many reconciles the steps are made of at most: making them takes longer the more there are. */
const maxStepped = 300;

/** StepAxis gives every moment at which something happened room enough to be seen, and folds the time in between. */
export class StepAxis {
  moments = [];
  places = [];
  folds = [];
  size = 1; // what zooming changes
  offset = 0; // the place at the left edge
  width = 1;

  build(passes, loose) {
    const recent = passes.slice(-maxStepped);
    const all = [];
    for (const pass of recent) {
      all.push(pass.start, pass.end);
      for (const cause of pass.causes) all.push(cause.t);
      for (const write of pass.writes) all.push(write.at);
    }
    // Changes that led to nothing find their place in between, unless there is nothing else.
    if (recent.length === 0) for (const change of loose.slice(-maxStepped)) all.push(change.t);
    all.sort((a, b) => a - b);
    this.moments = [];
    for (const t of all) if (this.moments.length === 0 || t - this.moments[this.moments.length - 1] > 0.02) this.moments.push(t);
    this.place();
  }

  place() {
    this.places = new Array(this.moments.length);
    this.folds = [];
    let place = 0;
    for (let i = 0; i < this.moments.length; i++) {
      const gap = i === 0 ? 0 : this.moments[i] - this.moments[i - 1];
      if (i > 0) place += (13 + 9 * Math.log10(1 + Math.min(gap, 1000)) + (gap > 1000 ? 44 : 0)) * this.size;
      if (gap > 1000) this.folds.push({ place: place - 22 * this.size, gap });
      this.places[i] = place;
    }
    this.total = place;
  }

  x(t) {
    return this.placeOf(t) - this.offset;
  }

  placeOf(t) {
    const { moments, places } = this;
    const n = moments.length;
    if (n === 0) return 0;
    if (t <= moments[0]) return t === moments[0] ? 0 : -40;
    if (t >= moments[n - 1]) return this.total + (t === moments[n - 1] ? 0 : 16);
    let low = 0;
    let high = n - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (moments[middle] <= t) low = middle;
      else high = middle;
    }
    const share = (t - moments[low]) / (moments[high] - moments[low]);
    return places[low] + share * (places[high] - places[low]);
  }

  t(x) {
    const place = x + this.offset;
    const { moments, places } = this;
    if (moments.length === 0) return Date.now();
    let low = 0;
    let high = places.length - 1;
    if (place <= 0) return moments[0] - (place < -1 ? 1 : 0);
    if (place >= this.total) return place > this.total + 60 ? Infinity : moments[high] + 0.01;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (places[middle] <= place) low = middle;
      else high = middle;
    }
    const share = (place - places[low]) / (places[high] - places[low]);
    return moments[low] + share * (moments[high] - moments[low]);
  }

  /** rest is the offset at which the latest is at the right edge. */
  get rest() {
    return Math.max(-28, this.total - this.width + 130);
  }

  pan(pixels) {
    this.offset = Math.max(-28, Math.min(this.offset - pixels, Math.max(0, this.total - 80)));
  }

  zoom(factor, x) {
    const share = (this.offset + x) / Math.max(1, this.total);
    this.size = Math.max(0.25, Math.min(8, this.size * factor));
    this.place();
    this.offset = share * this.total - x;
  }

  show(t) {
    this.offset = this.placeOf(t) - this.width / 2;
  }

  ticks() {
    const result = [];
    for (const fold of this.folds) {
      const x = fold.place - this.offset;
      if (x > -60 && x < this.width + 60) result.push({ x, text: `${span(fold.gap)} later`, fold: true });
    }
    let last = -Infinity;
    for (let i = 0; i < this.moments.length; i++) {
      const x = this.places[i] - this.offset;
      if (x < -100 || x > this.width + 20 || x - last < 150) continue;
      if (result.some((r) => r.fold && r.x > x - 40 && r.x < x + 120)) continue;
      result.push({ x, text: clock(this.moments[i]) });
      last = x;
    }
    return result;
  }
}
