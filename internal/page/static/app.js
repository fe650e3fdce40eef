// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

import { Controls } from "/controls.js";
import { Details } from "/details.js";
import { Filter, View } from "/filter.js";
import { Findings } from "/findings.js";
import { Forest } from "/forest.js";
import { clock, instant, number, objectKey, objectName, placedName, because, outcomeWords, plural } from "/format.js";
import { listenToKeys } from "/keys.js";
import { List } from "/list.js";
import { Pointer } from "/pointer.js";
import { Rights } from "/rights.js";
import { Store } from "/store.js";
import { Stream } from "/stream.js";
import { Timeline } from "/timeline.js";
import { Totals } from "/totals.js";
import { Traffic } from "/traffic.js";
import { showCard, TreeView } from "/treeview.js";
import { Wire } from "/wire.js";

/** The time that a frame may spend on new messages. The rest waits for the next frame. */
const drainBudget = 5;

/** The shortest time between two updates of the lists. People do not read faster. */
const wordsEvery = 250;

/** App ties the parts together. All drawing happens in frame, once for any number of messages. */
class App {
  store = new Store();
  filter = new Filter();
  forest = new Forest();
  wire = new Wire();
  selected = null;
  recorded = true;
  until = 0; // when a recording has ended that is shown; 0 if the page is live
  operator = null; // what is known about an operator that runs in a process of its own
  wordsAt = 0;

  constructor() {
    const wake = () => this.wake();
    const motion = matchMedia("(prefers-reduced-motion: reduce)");
    this.view = new View(this.store, this.filter, (object) => this.forest.rootOf(object));
    this.findings = new Findings(this.forest, (object) => this.choose(this.forest.byKey.get(objectKey(object)) || null));
    this.timeline = new Timeline(this.view, this.forest, () => motion.matches);
    this.timeline.wake = wake;
    this.timeline.looping = (row) => this.findings.rows.has(row.key);
    this.treeView = new TreeView(this.forest, (node) => this.choose(node), (key) => this.findings.looping.has(key), () => this.store.several);
    this.list = new List(this.view, (pass, focus) => this.open(pass, focus), (pass) => this.select(pass, true));
    this.details = new Details(this.store, { open: (p, focus) => this.open(p, focus), close: () => this.close(), zoom: (p) => this.timeline.reveal(p) });
    this.totals = new Totals(this.view);
    this.traffic = new Traffic(this);
    this.rights = new Rights(this);
    this.pointer = new Pointer(this.timeline, (pass) => this.open(pass));
    this.controls = new Controls(this);
    listenToKeys(this);
    this.objects = new Stream((position) => `/api/stream${position ? `?after=${position}` : ""}`, ["tree", "changes", "operator", "findings", "traffic"], wake);
    this.records = new Stream(() => `/why/stream?after=${this.store.last}`, ["record", "lost"], wake);
    this.objects.open();
    setInterval(() => this.tick(), 1000);
    this.wake();
  }

  wake() {
    if (this.scheduled) return;
    this.scheduled = true;
    requestAnimationFrame((now) => this.frame(now));
  }

  frame(now) {
    this.scheduled = false;
    const until = performance.now() + drainBudget;
    let more = this.objects.drain((name, data) => this.takeObjects(name, JSON.parse(data)), until);
    more = this.records.drain((name, data) => this.takeRecord(name, JSON.parse(data)), until) || more;
    if (this.placed !== this.store.several) this.place();
    if (this.view.removals !== this.store.removals && now - this.wordsAt > wordsEvery) this.view.refresh();
    // One of the two a frame: together they could take longer than a frame lasts.
    if (this.treeChanged) {
      this.treeChanged = false;
      this.treeView.render();
    } else if (now - this.wordsAt > wordsEvery) this.words(now);
    const moving = this.timeline.frame(now) | this.traffic.render(now);
    this.controls.update();
    if (more || moving || this.treeChanged || this.listed !== this.view.version) this.wake();
  }

  /** words updates the texts. */
  words(now) {
    if (this.listed === this.view.version) return;
    this.wordsAt = now;
    this.listed = this.view.version;
    this.list.render();
    this.controls.words();
  }

  /** place shows namespaces from the moment on at which there are several. */
  place() {
    this.placed = this.store.several;
    document.getElementById("panel-list").classList.toggle("placed", this.placed);
    this.treeChanged = true;
    this.view.version++;
    this.controls.scope(this.treeView.chosen);
  }

  takeObjects(name, message) {
    if (name === "operator") return this.takeOperator(message);
    if (name === "findings") return this.takeFindings(message.findings);
    if (name === "traffic") {
      this.wire.lost += message.lost || 0;
      for (const raw of message.exchanges || []) {
        this.wire.add(raw);
        this.store.place(raw);
        if (raw.controller) this.store.controllers.add(raw.controller);
      }
      this.view.version++;
      return;
    }
    if (name === "changes") {
      this.store.lost += message.lost || 0;
      for (const raw of message.changes || []) {
        const change = this.store.addChange(raw);
        if (change) this.view.addLoose(change);
      }
      return;
    }
    if (message.instance && message.instance !== this.instance) {
      // Another server: its records start from the beginning, and the records here are about the old one.
      if (this.instance) this.forget();
      this.instance = message.instance;
      this.recorded = message.recorded;
      this.until = message.until ? instant(message.until) : 0;
      this.timeline.until = this.until;
      this.controls.stages(message);
      this.controls.title(message.title);
      if (this.recorded) this.records.open();
    }
    for (const object of message.objects || []) this.store.place(object);
    this.forest.apply(message);
    this.findings.mark();
    this.treeChanged = true;
    if (this.treeView.chosen) this.chosenChanged();
  }

  /** takeFindings shows the current findings. Findings that are not in the list are over. */
  takeFindings(list) {
    const news = this.findings.take(list);
    if (news.length > 0) this.say(news.join(" "));
    this.treeChanged = true;
    this.timeline.touch();
  }

  /** takeOperator records the state of the operator, whose processes come and go. */
  takeOperator(message) {
    this.operator = message;
    this.timeline.restarts = message.starts.slice(1).map(instant);
    this.timeline.touch();
    this.listed = this.wordsAt = -Infinity;
  }

  /** Whether the operator does not record why it reconciles. */
  get silent() {
    return this.operator?.state === "silent" && this.store.passes.length === 0;
  }

  takeRecord(name, message) {
    if (name === "lost") {
      this.store.lost += message.records || 1;
      return;
    }
    const pass = this.store.add(message);
    if (!pass) return;
    this.view.add(pass);
  }

  forget() {
    this.close();
    this.operator = null;
    this.takeFindings([]);
    this.timeline.restarts = [];
    this.store.clear();
    this.wire.clear();
    this.records.waiting = []; // from the previous server; this one sends everything again
    this.records.lost = this.objects.lost = 0;
    this.view.refresh();
    this.choose(null);
  }

  /** now is the end of what is shown: this moment, or the end of a recording. */
  now() {
    return this.until || Date.now();
  }

  /** Whether time goes on. */
  get moving() {
    return this.until === 0;
  }

  tick() {
    const seconds = 3;
    const since = this.now() - seconds * 1000;
    let recent = 0;
    let events = 0;
    for (let i = this.store.passes.length - 1; i >= 0 && this.store.passes[i].end > since; i--) events += this.store.passes[i].folded;
    for (let i = this.view.passes.length - 1; i >= 0 && this.view.passes[i].end > since; i--) recent++;
    this.controls.rate(events / seconds);
    this.timeline.chooseScale(recent / seconds);
    this.card();
    this.wake();
  }

  /** card shows the chosen object as it is now. */
  card() {
    showCard(document.getElementById("card"), this.treeView.chosen, Date.now());
  }

  say(text) {
    document.getElementById("say").textContent = text;
  }

  /** choose limits everything to an object and what belongs to it. */
  choose(node) {
    this.treeView.chosen = node;
    this.filter.scope = node ? this.forest.keysBelow(node) : null;
    this.card();
    this.controls.scope(node);
    this.refilter();
    this.treeView.show(node);
  }

  /** chosenChanged keeps up with the chosen object. What has happened to one that is gone can still be looked at. */
  chosenChanged() {
    let node = this.treeView.chosen;
    const another = node.gone && this.forest.byKey.get(node.key);
    if (another) node = this.treeView.chosen = another;
    if (another || (node.gone && this.missed !== node)) {
      this.missed = another ? null : node;
      this.say(`${objectName(node.object)} ${another ? "was recreated" : "was deleted"}.`);
      this.controls.scope(node);
      this.card();
    }
    const keys = this.forest.keysBelow(node);
    if (keys.size === this.filter.scope.size) return;
    this.filter.scope = keys;
    this.view.refresh();
  }

  refilter() {
    this.view.refresh();
    this.timeline.toLatest();
    this.wordsAt = 0;
    this.traffic.dirty = true;
    if (document.body.dataset.stage === "rights") this.rights.draw();
    this.wake();
  }

  select(pass, reveal) {
    this.selected = pass;
    this.timeline.select(pass, reveal);
    this.list.choose(pass, reveal);
    if (pass) {
      this.say(`${clock(pass.start)} ${placedName(pass.object, this.placed)}: ${because(pass)}. ${outcomeWords[pass.outcome] || pass.outcome}.`);
      if (this.details.pass && this.details.pass !== pass) this.details.show(pass);
    }
  }

  open(pass, focus) {
    if (focus && !document.getElementById("details").contains(document.activeElement)) this.back = document.activeElement;
    this.details.show(pass, focus);
    this.select(pass, true);
  }

  close() {
    const focused = document.getElementById("details").contains(document.activeElement);
    this.details.show(null);
    this.select(null);
    if (focused) (this.back?.isConnected ? this.back : this.list.box).focus();
  }

  get figures() {
    const { reconciled, passes, dropped } = this.store;
    return `${plural(this.forest.nodes.size, "object")}, ${number(reconciled.size)} reconciled · ${plural(passes.length + dropped, "reconcile")}`;
  }
}

// For tests and for the console of the browser.
globalThis.opdock = new App();
