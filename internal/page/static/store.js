// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

import { instant, isUser, nanoseconds, objectKey } from "/format.js";

/** How much is kept. A page may stay open for days; what is dropped is counted and said. */
export const maxPasses = 10_000;
export const maxChanges = 4_000;

/** Store holds the reconciles, and which of them led to which. */
export class Store {
  passes = []; // in the order of their arrival
  byId = new Map();
  changes = new Map(); // what happened to an object, by object and resource version; shared by all events that it caused
  writes = new Map(); // by object and resource version, to find the change that each of them made
  loose = []; // changes that led to no reconcile that is known
  controllers = new Set();
  managers = new Set(); // the names under which reconciles write
  reconciled = new Set(); // the keys of all objects that were
  namespaces = new Set();
  dropped = 0;
  lost = 0;
  events = 0;
  last = 0; // the ID of the latest record
  /** Counts removals, so others can invalidate what they derived. */
  removals = 0;

  add(record) {
    if (this.byId.has(record.id)) return null;
    const pass = this.describe(record);
    this.byId.set(pass.id, pass);
    this.passes.push(pass);
    this.last = Math.max(this.last, pass.id);
    this.controllers.add(pass.controller);
    this.reconciled.add(objectKey(pass.object));
    this.place(pass.object);
    this.events += pass.folded;
    if (this.passes.length > maxPasses * 1.1) this.drop(this.passes.length - maxPasses);
    return pass;
  }

  /** place notes where an object is. */
  place(object) {
    if (object.namespace) this.namespaces.add(object.namespace);
  }

  /** Whether a name alone does not say which object is meant. */
  get several() {
    return this.namespaces.size > 1;
  }

  describe(record) {
    const start = instant(record.start);
    const findings = new Set((record.findings || []).map((f) => f.type));
    const pass = {
      id: record.id, raw: record, controller: record.controller, object: record.object, outcome: record.outcome,
      error: record.error || "", folded: record.folded, written: record.written, findings,
      loop: findings.has("loop"), self: findings.has("self-inflicted"), noop: findings.has("noop"),
      key: `${record.controller}|${objectKey(record.object)}`,
      start, end: start + nanoseconds(record.duration), first: start, causes: [], writes: [], ledTo: [],
    };
    pass.writes = (record.writes || []).map((raw, index) => {
      const at = instant(raw.at);
      if (raw.manager) this.managers.add(raw.manager);
      const write = { raw, pass, index, at, end: at + nanoseconds(raw.duration) };
      if (raw.resourceVersion && !raw.noChange) {
        write.key = changeKey(raw, at);
        this.writes.set(write.key, write);
        const change = this.changes.get(write.key);
        if (change) Object.assign(change, { own: true, from: write });
      }
      return write;
    });
    for (const raw of record.causes || []) {
      const t = instant(raw.seen || record.start);
      // Clocks jump; what is drawn to the right of its effect would only confuse.
      const seen = Math.min(Number.isFinite(t) && t > 0 ? t : start, start);
      pass.first = Math.min(pass.first, seen);
      pass.causes.push({ raw, pass, t: seen, user: isUser(raw, this.managers), change: this.changeOf(raw, seen), from: this.origin(raw, pass) });
    }
    return pass;
  }

  /** changeOf is what happened to the object of an event; retries and timers are about none. */
  changeOf(raw, t) {
    if (!raw.object || !["created", "updated", "deleted"].includes(raw.type)) return null;
    const key = changeKey(raw, t);
    let change = this.changes.get(key);
    if (!change) {
      change = { key, t, object: raw.object, raw, users: 0, own: false };
      this.changes.set(key, change);
    }
    change.own ||= Boolean(raw.write);
    change.t = Math.min(change.t, t);
    change.users++;
    return change;
  }

  /** origin is the write that an event is the echo of, or the reconcile that asked for this one. */
  origin(raw, pass) {
    if (raw.write) {
      const from = this.byId.get(raw.write.record);
      const write = from?.writes[raw.write.index];
      if (from && !from.ledTo.includes(pass)) from.ledTo.push(pass);
      return write || null;
    }
    if (raw.type !== "retried" && raw.type !== "timer") return null;
    for (let i = this.passes.length - 1, tries = 0; i >= 0 && tries < 500; i--, tries++) {
      const before = this.passes[i];
      if (before.key === pass.key) {
        before.ledTo.push(pass);
        return { pass: before, end: before.end, again: true };
      }
    }
    return null;
  }

  /** addChange notes a change that may have led to nothing. */
  addChange(raw) {
    const t = instant(raw.seen);
    const key = changeKey(raw, t);
    if (this.changes.has(key)) return null;
    const from = this.writes.get(key) || null;
    const change = { key, t, object: raw.object, raw, users: 0, own: Boolean(from), from, loose: true };
    this.changes.set(key, change);
    this.place(raw.object);
    this.loose.push(change);
    if (this.loose.length > maxChanges * 1.1) {
      for (const old of this.loose.splice(0, this.loose.length - maxChanges)) {
        if (old.users === 0) this.changes.delete(old.key);
      }
      this.removals++;
    }
    return change;
  }

  drop(count) {
    const gone = this.passes.slice(0, count);
    this.passes = this.passes.slice(count);
    for (const pass of gone) {
      this.byId.delete(pass.id);
      for (const cause of pass.causes) {
        if (cause.change && --cause.change.users === 0) this.changes.delete(cause.change.key);
        cause.from = null; // or else a chain of causes would keep everything alive
      }
      for (const write of pass.writes) if (write.key) this.writes.delete(write.key);
      pass.ledTo = [];
      pass.gone = true;
    }
    this.dropped += count;
    this.removals++;
  }

  clear() {
    this.drop(this.passes.length);
    this.loose = [];
    this.changes.clear();
    this.writes.clear();
    this.controllers.clear();
    this.namespaces.clear();
    this.managers.clear();
    this.reconciled.clear();
    this.dropped = this.lost = this.events = this.last = 0;
  }
}

/** changeKey is the same for a change from every source. A deleted object may keep its resource version. */
function changeKey(raw, t) {
  return `${objectKey(raw.object)}@${raw.resourceVersion || t}${raw.type === "deleted" ? " gone" : ""}`;
}

/** chain is all that led to a reconcile, and all that it led to. */
export function chain(pass) {
  const found = new Set([pass]);
  const walk = (next) => {
    const queue = [pass];
    while (queue.length > 0 && found.size < 400) {
      for (const other of next(queue.shift())) {
        if (other && !other.gone && !found.has(other)) {
          found.add(other);
          queue.push(other);
        }
      }
    }
  };
  walk((p) => p.causes.map((c) => c.from?.pass));
  walk((p) => p.ledTo);
  return found;
}
