// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

import { changeText, objectName, withoutMiddle, writersOf } from "/format.js";
import { drawChange, drawEvent, drawPass, drawWrite } from "/glyphs.js";

export const head = 24; // height of the times above the rows
/** Less of a word than this says nothing. */
const leastLetters = 8;
const leastHeadline = 56; // the same in pixels
const pad = 7; // above and below the lanes of a row

/** laneY is the middle of a lane: changes, events, reconciles, writes. */
export function laneY(top, lane, laneHeight) {
  return top + pad + (lane + 0.5) * laneHeight;
}

export function rowHeight(laneHeight) {
  return 4 * laneHeight + 2 * pad;
}

export function barWidth(axis, pass) {
  return Math.max(8, axis.x(pass.end) - axis.x(pass.start));
}

/** from finds the first reconcile of a row that ends after a time. Each row is in order. */
export function from(passes, t) {
  let low = 0;
  let high = passes.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (passes[middle].end < t) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Painter draws the rows. Shapes that cover the same pixels are drawn once: the picture is the same, and a
 * flood of events costs no more than the screen is wide.
 */
export class Painter {
  taken = new Set();
  widths = new Map();
  /** The parts of the last painting, for tests and assistive technology. */
  drawn = {};

  paint(g, scene) {
    this.drawn = { passes: 0, changes: 0, events: 0, writes: 0, edges: 0, echoes: 0, restarts: 0, pale: 0, headlines: [] };
    const { colours, width, height, laneHeight, scroll } = scene;
    g.fillStyle = colours.row;
    g.fillRect(0, 0, width, height);
    const tall = rowHeight(laneHeight);
    const first = Math.max(0, Math.floor(scroll / tall));
    const last = Math.min(scene.rows.length, Math.ceil((scroll + height - head) / tall));
    const tops = new Map();
    for (let i = first; i < last; i++) {
      const top = head + i * tall - scroll;
      tops.set(scene.rows[i].key, top);
      if (i % 2 === 1) {
        g.fillStyle = colours.rowOther;
        g.fillRect(0, top, width, tall);
      }
      g.fillStyle = colours.grid;
      g.fillRect(0, top + tall - 1, width, 1);
    }
    this.ticks(g, scene);
    for (let i = first; i < last; i++) this.row(g, scene, scene.rows[i], tops, i % 2 === 1 ? colours.rowOther : colours.row);
    this.header(g, scene);
  }

  ticks(g, { axis, colours, width, height, restarts }) {
    this.marks = axis.ticks();
    this.restarts = restarts.map((t) => axis.x(t)).filter((x) => x > 0 && x < width);
    this.drawn.restarts = this.restarts.length;
    g.fillStyle = colours.accent;
    for (const x of this.restarts) for (let y = head; y < height; y += 8) g.fillRect(x, y, 1.5, 5);
    for (const { x, fold } of this.marks) {
      g.fillStyle = fold ? colours.lineStrong : colours.grid;
      if (fold) for (let y = head + 2; y < height; y += 6) g.fillRect(x, y, 1, 3);
      else g.fillRect(x, head, 1, height);
    }
  }

  header(g, { colours, width }) {
    g.fillStyle = colours.panel;
    g.fillRect(0, 0, width, head - 1);
    g.fillStyle = colours.line;
    g.fillRect(0, head - 1, width, 1);
    g.font = `11px ${colours.sans}`;
    g.textBaseline = "middle";
    for (const { x, text, fold } of this.marks) {
      g.textAlign = fold ? "center" : "left";
      g.fillStyle = fold ? colours.text : colours.muted;
      g.fillText(text, fold ? x : x + 4, head / 2);
    }
    g.textAlign = "left";
    for (const x of this.restarts) {
      const text = "restarted";
      g.fillStyle = colours.panel;
      g.fillRect(x, 0, g.measureText(text).width + 8, head - 1);
      g.fillStyle = colours.accent;
      g.fillText(text, x + 4, head / 2);
    }
  }

  row(g, scene, row, tops, background) {
    const { axis, width, laneHeight, chain } = scene;
    const top = tops.get(row.key);
    const y = [0, 1, 2, 3].map((lane) => laneY(top, lane, laneHeight));
    const from0 = from(row.passes, axis.t(-60));
    this.taken.clear();
    const shown = [];
    for (let i = from0; i < row.passes.length; i++) {
      const pass = row.passes[i];
      if (axis.x(pass.first) > width + 20) break;
      shown.push(pass);
    }
    this.edges(g, scene, row, shown, y, tops);
    for (const pass of shown) {
      const pale = chain && !chain.has(pass);
      if (pale) this.drawn.pale++;
      g.globalAlpha = pale ? 0.28 : 1;
      this.signs(g, scene, pass, y);
    }
    g.globalAlpha = 1;
    for (const change of row.loose) {
      if (change.users > 0) continue;
      const x = axis.x(change.t);
      if (x < -10 || x > width + 10) continue;
      this.drawn.changes++;
      if (this.take(0, x)) drawChange(g, scene.colours, x, y[0], scene.radius * 0.7, change.own, true);
    }
    if (laneHeight >= 22 && shown.length < 80) this.labels(g, scene, row, shown, y, background);
    if (shown.length < 300) this.headlines(g, scene, shown, y, top, background);
  }

  /** take says whether there is nothing yet in a lane at a place. */
  take(lane, x, fine = 3) {
    const place = lane * 100_000 + Math.round(x / fine);
    if (this.taken.has(place)) return false;
    this.taken.add(place);
    return true;
  }

  signs(g, scene, pass, y) {
    this.drawn.passes++;
    this.drawn.events += pass.causes.length;
    this.drawn.writes += pass.writes.length;
    const { axis, colours, radius, laneHeight } = scene;
    for (const cause of pass.causes) {
      const x = axis.x(cause.t);
      if (cause.change && this.take(0, x)) drawChange(g, colours, x, y[0], radius, cause.change.own);
      if (this.take(1, x)) drawEvent(g, colours, x, y[1], radius + 0.5, cause.raw.type);
    }
    for (const write of pass.writes) {
      const x = axis.x(write.at);
      if (this.take(3, x)) drawWrite(g, colours, x, y[3], radius + 0.5, write.raw);
    }
    const x = axis.x(pass.start);
    const width = barWidth(axis, pass);
    const chosen = pass === scene.selected;
    if (chosen) {
      g.fillStyle = colours.accent;
      g.beginPath();
      const height = Math.min(laneHeight - 4, 16) + 14;
      g.roundRect(x - 6, y[2] - height / 2, width + 12, height, 7);
      g.globalAlpha = 0.22;
      g.fill();
      g.globalAlpha = 1;
      g.lineWidth = 2;
      g.strokeStyle = colours.accent;
      g.stroke();
    }
    if (chosen || pass.loop || this.take(2, x, 4)) drawPass(g, colours, x, y[2], width, Math.min(laneHeight - 4, 16), pass);
  }

  /** edges are what connects: change, event, reconcile, write, and the change that is the echo of the write. */
  edges(g, scene, row, shown, y, tops) {
    const { axis, colours, chain, radius } = scene;
    const plain = [];
    const strong = [];
    const echoes = [];
    const strongEchoes = [];
    for (const pass of shown) {
      const within = chain?.has(pass);
      const into = within ? strong : plain;
      const start = axis.x(pass.start);
      for (const cause of pass.causes) {
        const x = axis.x(cause.t);
        if (cause.change && (within || this.take(4, x))) into.push(x, y[0] + radius, x, y[0] + 8, x, y[1] - 8, x, y[1] - radius);
        if (within || this.take(5, x)) curve(into, x, y[1] + radius, start + 3, y[2] - 7);
        if (cause.from) this.echo(within ? strongEchoes : echoes, scene, cause, x, y, tops, within);
      }
      for (const write of pass.writes) {
        const x = Math.max(start + 2, axis.x(write.at));
        if (within || this.take(6, x)) into.push(x, y[2] + 7, x, y[2] + 10, x, y[3] - 10, x, y[3] - radius);
      }
    }
    for (const change of row.loose) {
      const x = axis.x(change.t);
      if (!change.from || change.users > 0 || x < -10 || x > scene.width + 10) continue;
      const within = chain?.has(change.from.pass);
      this.echo(within ? strongEchoes : echoes, scene, { from: change.from, change }, x, y, tops, within);
    }
    this.drawn.edges += (plain.length + strong.length) / 8;
    this.drawn.echoes += (echoes.length + strongEchoes.length) / 8;
    g.lineCap = "round";
    g.globalAlpha = chain ? 0.3 : 0.9;
    stroke(g, plain, colours.edge, 1.25);
    g.globalAlpha = chain ? 0.2 : 0.65;
    stroke(g, echoes, colours.echo, 1.25);
    g.globalAlpha = 1;
    stroke(g, strong, colours.edgeStrong, 2);
    stroke(g, strongEchoes, colours.echo, 2);
  }

  echo(into, scene, cause, x, y, tops, within) {
    const { axis, radius, laneHeight } = scene;
    const origin = cause.from;
    const top = tops.get(origin.pass.key);
    if (top === undefined) return;
    const x0 = axis.x(origin.again ? origin.end : origin.at);
    if (x0 < -4000 || (!within && !this.take(7, x0 * 31 + x))) return;
    const lane = origin.again ? 2 : 3;
    const y0 = laneY(top, lane, laneHeight);
    const y1 = cause.change ? y[0] : y[1];
    const bend = Math.max(2, Math.min(70, (x - x0) * 0.6));
    into.push(x0 + radius, y0, x0 + radius + bend, y0, x - radius - bend, y1, x - radius, y1);
  }

  /**
   * headlines name the changes of users above the lanes, on a line of their own: an echo must not
   * take the room of the change that caused it.
   */
  headlines(g, scene, shown, y, top, background) {
    const { axis, colours, chain, radius, width, laneHeight } = scene;
    const items = [];
    for (const pass of shown) {
      for (const cause of pass.causes) {
        const x = axis.x(cause.t);
        if (cause.user && x > -10 && x < width) items.push({ x: x - radius, text: changeLabel(cause), dim: chain && !chain.has(pass) });
      }
    }
    if (items.length === 0) return;
    items.sort((a, b) => a.x - b.x);
    g.font = `600 ${laneHeight < 22 ? 10 : 11}px ${colours.sans}`;
    g.textBaseline = "middle";
    g.lineWidth = 3;
    g.lineJoin = "round";
    g.strokeStyle = background;
    const line = laneHeight < 22 ? top + 6 : y[0] - radius - 7;
    let free = 2; // up to where there is text already
    items.forEach(({ x, text, dim }, i) => {
      const end = Math.min((items[i + 1]?.x ?? Infinity) - 8, width - 4);
      if (end - free < leastHeadline) return;
      const whole = this.widthOf(g, text);
      // What would not fit to the right begins further left, as far as that is free.
      const left = Math.max(free, Math.min(x, end - whole));
      if (end - left < Math.min(whole, leastHeadline)) return;
      const fitting = whole <= end - left ? text : withoutMiddle(text, Math.floor((text.length * (end - left)) / whole) - 2);
      g.globalAlpha = 1;
      g.strokeText(fitting, left, line);
      g.globalAlpha = dim ? 0.45 : 1;
      g.fillStyle = colours.text;
      g.fillText(fitting, left, line);
      free = left + Math.min(whole, end - left) + 8;
      this.drawn.headlines.push(fitting);
    });
    g.globalAlpha = 1;
  }

  /** widthOf remembers how wide texts are: measuring takes longer than drawing. */
  widthOf(g, text) {
    const key = g.font + text;
    let width = this.widths.get(key);
    if (width === undefined) {
      if (this.widths.size > 2000) this.widths.clear();
      width = g.measureText(text).width;
      this.widths.set(key, width);
    }
    return width;
  }

  /** labels say in words what there is room for. */
  labels(g, scene, row, shown, y, background) {
    const { axis, colours, chain, radius, width } = scene;
    g.font = `11px ${colours.sans}`;
    g.textBaseline = "middle";
    const lanes = [[], [], [], []];
    for (const change of row.loose.slice(-100)) {
      const x = axis.x(change.t);
      // Where there are reconciles, what led to none only takes up its place.
      const text = row.passes.length === 0 ? changeLabel(change) : "";
      if (change.users === 0 && x > -100 && x < width) lanes[0].push({ left: x - radius, right: x + radius, text, dim: Boolean(chain) });
    }
    for (const pass of shown) {
      const dim = chain && !chain.has(pass);
      const add = (lane, left, right, text, colour) => lanes[lane].push({ left, right, text, dim, colour });
      for (const cause of pass.causes) {
        const x = axis.x(cause.t);
        if (cause.change) add(0, x - radius, x + radius, cause.user ? "" : changeLabel(cause));
        add(1, x - radius, x + radius, cause.raw.type);
      }
      const x = axis.x(pass.start);
      add(2, x, x + barWidth(axis, pass) + (pass.loop ? 4 : 0), passLabel(pass), pass.loop && colours.loop);
      for (const { raw, at } of pass.writes) {
        const place = axis.x(at);
        add(3, place - radius, place + radius, `${raw.verb} ${raw.subresource || objectName(raw.object)}`);
      }
    }
    g.lineWidth = 3;
    g.lineJoin = "round";
    g.strokeStyle = background;
    lanes.forEach((items, lane) => {
      items.sort((a, b) => a.left - b.left);
      items.forEach(({ right, text, dim, colour }, i) => {
        const letters = Math.floor(((items[i + 1]?.left ?? width + 200) - right - 12) / 5.9);
        if (right < -200 || !text || letters < Math.min(text.length, leastLetters)) return;
        const shown = text.length > letters ? text.slice(0, letters - 1) + "…" : text;
        g.globalAlpha = 1;
        g.strokeText(shown, right + 5, y[lane] + 0.5); // so that curves do not cross it out
        g.globalAlpha = dim ? 0.45 : 1;
        g.fillStyle = colour || colours.muted;
        g.fillText(shown, right + 5, y[lane] + 0.5);
      });
    });
    g.globalAlpha = 1;
  }
}

function changeLabel({ raw, object }) {
  const by = writersOf(raw);
  if (!raw.changes?.length) return `${by} ${raw.type}${object ? ` ${objectName(object)}` : ""}`.trim();
  const what = changeText(raw.changes[0]);
  const of = object ? ` of ${objectName(object)}` : ""; // that of an event is known by the row it is in
  return (by ? `${by}: ${what}` : what) + of;
}

function passLabel(pass) {
  const folded = pass.folded > 1 ? `${pass.folded} events` : "";
  const what = pass.loop ? "∞ loop" : pass.outcome !== "succeeded" ? pass.outcome : pass.noop ? "no-op" : "";
  return [what, folded].filter(Boolean).join(", ");
}

function curve(into, x0, y0, x1, y1) {
  const middle = (y0 + y1) / 2;
  into.push(x0, y0, x0, middle, x1, middle, x1, y1);
}

/** Paths of a few hundred curves are drawn faster than one of thousands. */
const perPath = 120;

function stroke(g, curves, colour, width) {
  if (curves.length === 0) return;
  g.strokeStyle = colour;
  g.lineWidth = width;
  for (let i = 0; i < curves.length; ) {
    g.beginPath();
    for (let n = 0; n < perPath && i < curves.length; n++, i += 8) {
      g.moveTo(curves[i], curves[i + 1]);
      if (curves[i] === curves[i + 6]) g.lineTo(curves[i + 6], curves[i + 7]);
      else g.bezierCurveTo(curves[i + 2], curves[i + 3], curves[i + 4], curves[i + 5], curves[i + 6], curves[i + 7]);
    }
    g.stroke();
  }
}
