// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

import { instant, nanoseconds, objectKey } from "/format.js";

/** How many requests and watch events are kept. What is dropped is counted and said. */
export const maxExchanges = 20_000;

const writing = new Set(["create", "update", "patch", "apply", "delete", "deletecollection"]);
const verbOrder = ["get", "list", "watch", "events", "create", "update", "patch", "apply", "delete", "deletecollection"];

/** Wire holds what went over the wire, in the order of its arrival. */
export class Wire {
  all = [];
  kinds = new Map(); // of resources, as far as answers have told
  dropped = 0;
  lost = 0;
  version = 0;

  add(raw) {
    const resource = raw.path || `${raw.resource}${raw.group ? `.${raw.group}` : ""}${raw.subresource ? `/${raw.subresource}` : ""}`;
    const verb = raw.event ? "events" : raw.verb;
    const x = { raw, resource, verb, key: `${resource} ${verb}`, t: instant(raw.at), took: nanoseconds(raw.duration), bytes: raw.bytes || 0 };
    x.sort = raw.event ? "event" : writing.has(raw.verb) ? "write" : "read";
    if (raw.kind) this.kinds.set(`${raw.group || ""}/${raw.resource}`, raw.kind);
    this.all.push(x);
    if (this.all.length > maxExchanges * 1.1) {
      const gone = this.all.length - maxExchanges;
      this.all.splice(0, gone);
      this.dropped += gone;
    }
    this.version++;
  }

  clear() {
    this.all = [];
    this.kinds.clear();
    this.dropped = this.lost = 0;
    this.version++;
  }

  /** objectOf is what a request is about, as the tree knows it. */
  objectOf({ raw }) {
    return raw.name ? { kind: raw.kind || this.kinds.get(`${raw.group || ""}/${raw.resource}`), group: raw.group, namespace: raw.namespace, name: raw.name } : null;
  }

  /** matches applies the filters that also make sense for requests: what is asked about causes and findings is about reconciles. */
  matches(x, filter) {
    const { raw } = x;
    if (filter.controller && raw.controller !== filter.controller) return false;
    if (filter.namespace && raw.namespace !== filter.namespace) return false;
    if (filter.wire.size > 0 && !(filter.wire.has("refused") && raw.refused) && !(filter.wire.has("nochange") && raw.note === "no change")) return false;
    if (filter.scope) {
      const object = this.objectOf(x);
      if (!(object && filter.scope.has(objectKey(object))) && !(raw.for && filter.scope.has(objectKey(raw.for)))) return false;
    }
    if (!filter.text) return true;
    x.text ??= [x.resource, x.verb, raw.namespace, raw.name, raw.kind, raw.status, raw.message, raw.note, raw.controller, raw.for?.name, raw.event].filter(Boolean).join(" ").toLowerCase();
    return x.text.includes(filter.text);
  }
}

/** tally counts what the filters leave of a time, per resource and verb and for equal parts of the time. */
export function tally(wire, filter, from, to, parts) {
  const rows = new Map();
  const found = [];
  const sum = { requests: 0, events: 0, refused: 0, nochange: 0, bytes: 0 };
  const width = (to - from) / parts;
  for (const x of wire.all) {
    if (x.t < from || x.t > to || !wire.matches(x, filter)) continue;
    found.push(x);
    let row = rows.get(x.key);
    if (!row) {
      row = { key: x.key, resource: x.resource, verb: x.verb, raw: x.raw, sort: x.sort, count: 0, refused: 0, nochange: 0, bytes: 0, took: [], parts: new Array(parts) };
      rows.set(x.key, row);
    }
    const at = Math.min(parts - 1, Math.floor((x.t - from) / width));
    const part = (row.parts[at] ||= { count: 0, refused: 0, nochange: 0, bytes: 0 });
    const same = x.raw.note === "no change" ? 1 : 0;
    const refused = x.raw.refused ? 1 : 0;
    for (const one of [row, part]) {
      one.count++;
      one.bytes += x.bytes;
      one.refused += refused;
      one.nochange += same;
    }
    if (x.took > 0) row.took.push(x.took);
    sum[x.verb === "events" ? "events" : "requests"]++;
    sum.refused += refused;
    sum.nochange += x.verb === "events" ? 0 : same;
    sum.bytes += x.bytes;
  }
  const place = (verb) => (verbOrder.includes(verb) ? verbOrder.indexOf(verb) : verbOrder.length);
  const sorted = [...rows.values()].sort((a, b) => (a.resource < b.resource ? -1 : a.resource > b.resource ? 1 : place(a.verb) - place(b.verb)));
  sorted.forEach((row, i) => {
    row.first = i === 0 || sorted[i - 1].resource !== row.resource;
    row.took.sort((a, b) => a - b);
    row.median = row.took.length > 0 ? row.took[row.took.length >> 1] : null;
  });
  return { rows: sorted, found, sum };
}

/** passOf finds the reconcile that sent a request. */
export function passOf(store, { raw, t }) {
  if (!raw.for) return null;
  const slack = 5; // the operator and the lens read their clocks at different moments
  return store.passes.findLast((p) => p.controller === raw.controller && p.object.name === raw.for.name && (p.object.namespace || "") === (raw.for.namespace || "") &&
    p.start - slack <= t && t <= p.end + slack) || null;
}
