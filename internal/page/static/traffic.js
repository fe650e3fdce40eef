// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

import { TimeAxis } from "/axis.js";
import { clock, number, plural, span } from "/format.js";
import { palette } from "/palette.js";
import { nameParts } from "/rights.js";
import { attribute, element, Rows, set } from "/rows.js";
import { passOf, tally } from "/wire.js";

const byId = (id) => document.getElementById(id);
const narrow = matchMedia("(max-width: 720px)");

/** How wide a bar is, with the gap to the next. */
const step = 5;

/** Traffic shows what goes over the wire per resource and verb, over time, and below it the requests themselves. */
export class Traffic {
  measure = "count";
  range = 300_000; // milliseconds; 0 for everything
  chosen = null; // the key of the row that limits the requests below
  picked = null; // the request that the keyboard is at
  axis = new TimeAxis(300_000);
  drawnAt = 0;

  constructor(app) {
    this.app = app;
    this.box = byId("traffic");
    this.list = byId("wire");
    this.colours = palette();
    this.rows = new Rows(this.box, height(28, 50), makeRow, (row, item, at) => this.fill(row, item, at));
    this.lines = new Rows(this.list, height(28, 48), makeLine, (line, x, at) => this.fillLine(line, x, at));
    narrow.addEventListener("change", () => {
      this.rows.resize(height(28, 50));
      this.lines.resize(height(28, 48));
    });
    this.listen();
    new ResizeObserver(() => this.touch()).observe(byId("traffic-axis"));
  }

  listen() {
    byId("measure").addEventListener("click", (event) => {
      const button = event.target.closest("[data-measure]");
      if (!button) return;
      this.measure = button.dataset.measure;
      for (const one of byId("measure").children) one.setAttribute("aria-pressed", one === button);
      this.touch();
    });
    byId("traffic-range").addEventListener("change", (event) => {
      this.range = Number(event.target.value);
      this.touch();
    });
    this.box.addEventListener("click", (event) => this.choose(this.rows.items[this.rows.at(event)]));
    this.list.addEventListener("click", (event) => this.open(this.lines.items[this.lines.at(event)]));
    this.box.addEventListener("keydown", (event) => walk(event, this.rows, () => this.choose(this.rows.items[this.rows.active])));
    this.list.addEventListener("keydown", (event) => walk(event, this.lines, () => this.open(this.lines.items[this.lines.active], true)));
    this.box.addEventListener("focus", () => this.rows.active < 0 && this.rows.items.length > 0 && this.rows.moveTo(0));
    this.list.addEventListener("focus", () => this.lines.active < 0 && this.lines.items.length > 0 && this.lines.moveTo(0));
  }

  touch() {
    this.dirty = true;
    this.app.wake();
  }

  repaint() {
    this.colours = palette();
    this.touch();
  }

  /** choose shows the requests of one row only, or of all again. */
  choose(item) {
    if (!item) return;
    this.chosen = this.chosen === item.key ? null : item.key;
    this.touch();
  }

  /** leave takes back what is chosen, and says whether there was something. */
  leave() {
    if (!this.chosen) return false;
    this.chosen = null;
    this.touch();
    return true;
  }

  /** open opens the reconcile that sent a request. */
  open(x, focus) {
    if (!x) return;
    const pass = passOf(this.app.store, x);
    if (pass) this.app.open(pass, focus);
    else this.app.say(x.raw.for ? "This reconcile is not kept, or has not ended yet." : "The reconcile that sent this is unknown.");
  }

  /** render draws if something is new, at most a few times a second. People do not read faster. */
  render(now) {
    if (document.body.dataset.stage !== "traffic") return false;
    const news = this.dirty || this.seen !== this.app.wire.version || (this.app.moving && now - this.drawnAt > 1000);
    if (!news) return false;
    if (!this.dirty && now - this.drawnAt < 250) return true;
    this.dirty = false;
    this.seen = this.app.wire.version;
    this.drawnAt = now;
    this.draw();
    return false;
  }

  draw() {
    const { wire, filter } = this.app;
    const to = this.app.now();
    const from = this.range > 0 ? to - this.range : Math.min(to - 1000, wire.all[0]?.t ?? to - 60_000);
    const width = Math.max(60, byId("traffic-axis").clientWidth);
    const result = tally(wire, filter, from, to, Math.max(12, Math.floor(width / step)));
    Object.assign(this, { width, most: Math.max(1, ...result.rows.flatMap((r) => r.parts.map((p) => p?.[this.measure] || 0))) });
    this.drawAxis(from, to);
    if (this.chosen && !result.rows.some((r) => r.key === this.chosen)) this.chosen = null;
    this.rows.show(result.rows);
    const lines = this.chosen ? result.found.filter((x) => x.key === this.chosen) : result.found;
    const { top, height: each } = this.lines;
    const anchor = top > 0 ? this.lines.items[Math.floor(top / each)] : null;
    const active = this.lines.items[this.lines.active];
    const items = lines.toReversed();
    this.lines.active = active ? items.indexOf(active) : -1;
    this.lines.show(items);
    if (anchor) this.list.scrollTop = Math.max(0, items.indexOf(anchor)) * each + (top % each);
    this.words(result, lines);
  }

  words({ rows, sum }, lines) {
    const { wire, filter, treeView } = this.app;
    const parts = [plural(sum.requests, "request"), plural(sum.events, "watch event"), size(sum.bytes)];
    if (sum.refused > 0) parts.push(`${number(sum.refused)} refused`);
    if (wire.dropped > 0) parts.push(`${number(wire.dropped)} older dropped`);
    if (wire.lost > 0) parts.push(`${number(wire.lost)} missed`);
    set(byId("traffic-figures"), parts.join(" · "));
    set(byId("traffic-scope"), treeView.chosen ? byId("scope").textContent : "All objects");
    set(byId("wire-title"), this.chosen ? `${this.chosen.split(" ").reverse().join(" ")}: ` : "Latest requests and watch events: ");
    set(byId("wire-count"), number(lines.length));
    byId("wire-all").hidden = !this.chosen;
    for (const chip of byId("wire-chips").children) {
      const count = sum[chip.dataset.wire];
      set(chip.querySelector("b"), number(count));
      chip.classList.toggle("some", count > 0);
    }
    const empty = rows.length === 0;
    this.app.controls.empty("traffic-empty", empty && (wire.all.length === 0
      ? ["No requests yet", "Requests of the operator appear here as soon as it sends any."]
      : filter.active || filter.scope ? ["Nothing matches the filters", "Clear them, or choose a longer time."] : ["Nothing in this time", "Choose a longer one."]));
    this.box.hidden = empty;
  }

  drawAxis(from, to) {
    const canvas = byId("traffic-axis").firstElementChild;
    const g = context(canvas, this.width, 26);
    Object.assign(this.axis, { range: to - from, end: to, width: this.width });
    g.font = `12px ${this.colours.sans}`;
    g.fillStyle = this.colours.muted;
    this.ticks = [];
    for (const { x, text } of this.axis.ticks()) {
      if (x < 0 || x > this.width - 20) continue;
      this.ticks.push(x);
      if (x + g.measureText(text).width < this.width) g.fillText(text, x + 3, 17);
      g.fillRect(Math.round(x), 6, 1, 20);
    }
  }

  fill(row, item, at) {
    const [resource, verb, chart, count, refused, took, bytes] = row.children;
    attribute(row, "aria-selected", item.key === this.chosen);
    attribute(row, "aria-setsize", this.rows.items.length);
    attribute(row, "aria-posinset", at + 1);
    row.classList.toggle("first", item.first);
    const { group, resource: plain, subresource } = item.raw;
    const parts = nameParts({ object: item.resource, group, resource: `${plain}${subresource ? `/${subresource}` : ""}` });
    resource.replaceChildren(...(item.first || narrow.matches ? parts : []));
    attribute(resource, "title", item.resource);
    set(verb, item.verb === "events" ? "watch events" : item.verb);
    verb.dataset.sort = item.sort;
    set(count, number(item.count));
    set(refused, item.refused > 0 ? `${number(item.refused)} refused` : item.nochange > 0 ? `${number(item.nochange)} no change` : "");
    refused.classList.toggle("bad", item.refused > 0);
    set(took, item.median === null ? "" : span(item.median));
    set(bytes, item.bytes > 0 ? size(item.bytes) : "");
    attribute(row, "aria-label", [`${verb.textContent} ${item.resource}`, plural(item.count, item.verb === "events" ? "event" : "request"), refused.textContent,
      item.median === null ? "" : `median ${span(item.median)}`, bytes.textContent].filter(Boolean).join(", "));
    this.bars(chart, item);
  }

  /** bars draws one row. Heights are square roots, so that a single request is seen beside a thousand. */
  bars(canvas, item) {
    const c = this.colours;
    const tall = 24;
    const g = context(canvas, this.width, tall);
    g.fillStyle = c.grid;
    for (const x of this.ticks) g.fillRect(Math.round(x), 0, 1, tall);
    const each = this.width / item.parts.length;
    item.parts.forEach((part, i) => {
      const value = part?.[this.measure];
      if (!value) return;
      const high = Math.max(3, Math.sqrt(value / this.most) * (tall - 3));
      const x = i * each;
      g.fillStyle = { read: c.event, write: c.write, event: c.change }[item.sort];
      g.fillRect(x, tall - high, each - 1, high);
      const share = (of, colour, from) => {
        const h = Math.max(2.5, (high * of) / part.count);
        g.fillStyle = colour;
        g.fillRect(x, from(h), each - 1, h);
      };
      if (part.nochange > 0) share(part.nochange, c.noop, (h) => tall - h);
      if (part.refused > 0) share(part.refused, c.failed, () => tall - high);
    });
  }

  fillLine(line, x, at) {
    attribute(line, "aria-setsize", this.lines.items.length);
    attribute(line, "aria-posinset", at + 1);
    attribute(line, "aria-selected", at === this.lines.active);
    if (line.x === x) return;
    line.x = x;
    const { raw } = x;
    const [time, what, object, by, status, took] = line.children;
    set(time, clock(x.t));
    set(what, raw.event ? `watch ${raw.event.toLowerCase()}` : raw.verb);
    what.dataset.sort = x.sort;
    const place = `${raw.namespace ? `${raw.namespace}/` : ""}${raw.name || ""}`;
    object.replaceChildren(element("b", "", place || x.resource), " ", element("span", "kind", place ? x.resource : ""));
    attribute(object, "title", `${x.resource} ${place}`);
    set(by, raw.refused ? raw.message || "no answer" : raw.for ? `${raw.controller}: ${raw.for.name}` : raw.note || "");
    by.classList.toggle("bad", Boolean(raw.refused));
    by.classList.toggle("known", !raw.refused && Boolean(raw.for));
    attribute(by, "title", raw.refused ? raw.message : raw.for ? "Open the reconcile that sent it" : null);
    set(status, raw.event ? "" : [raw.status || "—", raw.for && raw.note ? raw.note : ""].filter(Boolean).join(" · "));
    status.classList.toggle("bad", Boolean(raw.refused));
    set(took, x.took > 0 ? span(x.took) : "");
  }
}

const height = (wide, small) => (narrow.matches ? small : wide);

/** size formats a number of bytes for people. */
export function size(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1024 * 1024) return `${(bytes / 1024).toFixed(bytes < 10_240 ? 1 : 0)} KiB`;
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}

/** context empties a canvas and returns what draws in it. */
function context(canvas, width, tall) {
  const ratio = Math.min(2, devicePixelRatio || 1);
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(tall * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${tall}px`;
  const g = canvas.getContext("2d");
  g.scale(ratio, ratio);
  return g;
}

/** walk moves in rows by keys, and acts on the one it is at. */
export function walk(event, rows, act) {
  if (event.ctrlKey || event.metaKey || event.altKey || rows.items.length === 0) return;
  const at = rows.active;
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.items.length - 1, PageDown: at + rows.page, PageUp: at - rows.page }[event.key];
  if (to === undefined && event.key !== "Enter" && event.key !== " ") return;
  event.preventDefault();
  event.stopPropagation();
  if (to === undefined) act();
  else rows.moveTo(Math.max(0, to));
}

function makeRow(index) {
  const row = element("div", "");
  row.id = `traffic-${index}`;
  row.setAttribute("role", "option");
  const chart = element("canvas", "chart");
  row.append(element("span", "resource"), element("span", "verb"), chart, element("span", "n"), element("span", "n refused"), element("span", "n"), element("span", "n"));
  return row;
}

function makeLine(index) {
  const line = element("div", "");
  line.id = `wire-${index}`;
  line.setAttribute("role", "option");
  line.append(element("span", "time"), element("span", "verb"), element("span", "object"), element("span", "by"), element("span", "status-code"), element("span", "took"));
  return line;
}
