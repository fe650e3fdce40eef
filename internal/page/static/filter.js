// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

import { because, did, objectKey } from "/format.js";

/** Filter decides which reconciles are shown. */
export class Filter {
  text = "";
  controller = "";
  namespace = "";
  outcome = "";
  cause = "";
  findings = new Set();
  wire = new Set(); // what is asked about requests: refused, nochange
  /** The keys of the object that was chosen in the tree and of all below it; null for everything. */
  scope = null;

  get active() {
    return Boolean(this.text || this.controller || this.namespace || this.outcome || this.cause || this.findings.size > 0 || this.wire.size > 0);
  }

  clear() {
    this.text = this.controller = this.namespace = this.outcome = this.cause = "";
    this.findings.clear();
    this.wire.clear();
  }

  matches(pass) {
    if (this.controller && pass.controller !== this.controller) return false;
    if (this.namespace && pass.object.namespace !== this.namespace) return false;
    if (this.outcome && pass.outcome !== this.outcome) return false;
    if (this.cause && !pass.causes.some((c) => c.raw.type === this.cause)) return false;
    if (this.findings.size > 0 && ![...this.findings].some((f) => pass.findings.has(f))) return false;
    if (this.scope && !this.inScope(pass)) return false;
    return !this.text || textOf(pass).includes(this.text);
  }

  inScope(pass) {
    const has = (o) => o && this.scope.has(objectKey(o));
    return has(pass.object) || pass.causes.some((c) => has(c.raw.object)) || pass.writes.some((w) => has(w.raw.object));
  }

  /** matchesChange is for changes that led to nothing: what is asked about reconciles cannot be true of them. */
  matchesChange(change) {
    if (this.controller || this.outcome || this.cause || this.findings.size > 0) return false;
    if (this.namespace && change.object.namespace !== this.namespace) return false;
    if (this.scope && !this.scope.has(objectKey(change.object))) return false;
    return !this.text || JSON.stringify(change.raw).toLowerCase().includes(this.text);
  }
}

/** textOf returns the text that a search covers. It is built on the first search, because most records are never searched. */
function textOf(pass) {
  if (pass.text === undefined) {
    const parts = [pass.controller, pass.object.kind, pass.object.namespace, pass.object.name, because(pass), did(pass), pass.error, pass.outcome, `#${pass.id}`];
    for (const { raw } of pass.causes) {
      parts.push(raw.type, raw.object?.kind, raw.object?.name);
      for (const change of raw.changes || []) parts.push(change.path, change.old, change.new);
      for (const writer of raw.by || []) parts.push(writer.manager);
    }
    for (const { raw } of pass.writes) parts.push(raw.verb, raw.object.kind, raw.object.name, raw.error);
    pass.text = parts.filter(Boolean).join(" ").toLowerCase();
  }
  return pass.text;
}

/** View is what of the store is shown now. New records are added one by one; only another filter looks at all of them. */
export class View {
  passes = [];
  loose = [];
  rows = new Map();
  byObject = new Map(); // the row of an object that changes are shown in
  /** Counts changes, so that others see whether there is something to draw. */
  version = 0;

  constructor(store, filter, rowOfObject) {
    Object.assign(this, { store, filter, rowOfObject });
  }

  refresh() {
    this.passes = [];
    this.loose = [];
    this.rows = new Map();
    this.counts = { loop: 0, "self-inflicted": 0, noop: 0 };
    this.byObject = new Map();
    for (const pass of this.store.passes) this.add(pass);
    for (const change of this.store.loose) this.addLoose(change);
    this.removals = this.store.removals;
    this.version++;
  }

  /** addLoose shows a change beside the reconciles of what it belongs to. If a reconcile follows, it shows it as its own. */
  addLoose(change) {
    if (change.users > 0 || !this.filter.matchesChange(change)) return;
    const object = this.rowOfObject(change.object);
    const key = objectKey(object);
    const row = this.byObject.get(key) || this.newRow("|" + key, object, "");
    row.loose.push(change);
    this.loose.push(change);
    this.version++;
  }

  counts = { loop: 0, "self-inflicted": 0, noop: 0 };

  add(pass) {
    if (!this.filter.matches(pass)) return;
    this.passes.push(pass);
    const row = this.rows.get(pass.key) || this.newRow(pass.key, pass.object, pass.controller);
    // Reconciles of one object come one after another, but records of several controllers may not.
    let at = row.passes.length;
    while (at > 0 && row.passes[at - 1].start > pass.start) at--;
    row.passes.splice(at, 0, pass);
    if (pass.noop) row.noops++;
    for (const finding of pass.findings) this.counts[finding] = (this.counts[finding] || 0) + 1;
    this.version++;
  }

  newRow(key, object, controller) {
    const known = this.byObject.get(objectKey(object));
    const row = { key, object, controller, passes: [], loose: [], noops: 0 };
    if (known && !known.controller) {
      // Changes came first; the reconciles that follow take their row over.
      row.loose = known.loose;
      this.rows.delete(known.key);
    }
    if (!known || !known.controller) this.byObject.set(objectKey(object), row);
    this.rows.set(key, row);
    return row;
  }
}
