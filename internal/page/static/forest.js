// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

import { objectKey } from "/format.js";

/** What matters most comes first; other kinds follow by name. */
const kindOrder = ["KAPP", "AppService", "PodCluster", "Robot", "Collector", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Pod", "Service", "Ingress", "HorizontalPodAutoscaler"];

/** How many objects that are gone are remembered, for the sake of records that are still about them. */
const maxGone = 5_000;

/** Forest is the custom resources, each with all that belongs to it. */
export class Forest {
  nodes = new Map(); // by UID
  byKey = new Map(); // by kind, group, namespace and name
  waiting = new Map(); // by UID of an owner that is not known yet
  roots = [];
  spaces = new Map(); // namespaces with the roots that are in them, as if those belonged to them
  parents = new Map(); // of objects that were there once: key of the object to key of its parent
  sorted = false;
  order = new Map(); // where each object stands in the tree, by key
  version = 0; // of the order

  apply(message) {
    if (message.whole) {
      const there = new Set((message.objects || []).map((o) => o.uid));
      for (const uid of [...this.nodes.keys()]) if (!there.has(uid)) this.remove(uid);
    }
    for (const object of message.objects || []) this.set(object);
    for (const uid of message.removed || []) this.remove(uid);
  }

  set(object) {
    let node = this.nodes.get(object.uid);
    if (!node) {
      node = { uid: object.uid, children: [], parent: null, open: undefined, key: objectKey(object) };
      this.nodes.set(object.uid, node);
      this.sorted = false;
    }
    node.object = object;
    this.byKey.set(node.key, node);
    const owner = (object.owners || []).find((uid) => this.nodes.has(uid));
    const parent = owner ? this.nodes.get(owner) : null;
    if (parent !== node.parent || node.parent === null) this.move(node, parent);
    const waiting = this.waiting.get(node.uid);
    if (waiting) {
      this.waiting.delete(node.uid);
      for (const uid of waiting) if (this.nodes.has(uid)) this.set(this.nodes.get(uid).object);
    }
  }

  move(node, parent) {
    // Objects that own each other in a circle would never end.
    for (let up = parent; up; up = up.parent) if (up === node) return;
    if (node.parent) node.parent.children = node.parent.children.filter((n) => n !== node);
    node.parent = parent;
    if (parent) {
      if (!parent.children.includes(node)) parent.children.push(node);
      this.parents.set(node.key, parent.key);
      if (this.parents.size > maxGone) this.parents.delete(this.parents.keys().next().value);
    } else {
      for (const uid of node.object.owners || []) {
        if (!this.waiting.has(uid)) this.waiting.set(uid, new Set());
        this.waiting.get(uid).add(node.uid);
      }
    }
    this.sorted = false;
  }

  remove(uid) {
    const node = this.nodes.get(uid);
    if (!node) return;
    this.nodes.delete(uid);
    node.gone = Date.now();
    if (this.byKey.get(node.key) === node) this.byKey.delete(node.key);
    if (node.parent) node.parent.children = node.parent.children.filter((n) => n !== node);
    for (const owner of node.object.owners || []) this.waiting.get(owner)?.delete(uid);
    for (const child of node.children) child.parent = null;
    for (const child of node.children) this.set(child.object);
    this.sorted = false;
  }

  sort() {
    if (this.sorted) return;
    this.sorted = true;
    this.roots = [];
    for (const node of this.nodes.values()) {
      if (!node.parent && node.object.fleet) this.roots.push(node);
      if (node.children.length > 1) node.children.sort(compare);
    }
    this.roots.sort(compare);
    for (const space of this.spaces.values()) space.children = [];
    for (const root of this.roots) if (root.object.namespace) this.space(root.object.namespace).children.push(root);
    this.number();
  }

  /** number gives every object of the tree its place: each comes after what it belongs to. */
  number() {
    this.order = new Map();
    this.version++;
    const add = (node, depth) => {
      this.order.set(node.key, { at: this.order.size, depth });
      for (const child of node.children) add(child, depth + 1);
    };
    for (const root of this.roots) add(root, 0);
  }

  /** placeOf is the place of an object; one that is gone has that of what it belonged to, and comes after it. */
  placeOf(key) {
    this.sort();
    for (let steps = 0; steps < 20; steps++) {
      const found = this.order.get(key);
      if (found) return { at: found.at, depth: found.depth + steps, below: steps };
      if (!this.parents.has(key)) break;
      key = this.parents.get(key);
    }
    return { at: Infinity, depth: 0, below: 0 };
  }

  space(name) {
    let space = this.spaces.get(name);
    if (!space) {
      const object = { kind: "Namespace", name, state: "plain" };
      space = { space: true, key: objectKey(object), object, children: [], parent: null, open: true };
      this.spaces.set(name, space);
    }
    return space;
  }

  /** rootOf is the custom resource that an object belongs to, or belonged to. */
  rootOf(object) {
    let key = objectKey(object);
    for (let steps = 0; steps < 20 && this.parents.has(key); steps++) key = this.parents.get(key);
    return this.byKey.get(key)?.object || object;
  }

  /** keysBelow are the keys of an object and of all that belongs or has belonged to it. */
  keysBelow(node) {
    this.sort();
    const keys = new Set();
    const queue = [node];
    while (queue.length > 0) {
      const next = queue.pop();
      keys.add(next.key);
      queue.push(...next.children);
    }
    for (const key of this.parents.keys()) {
      let up = key;
      for (let steps = 0; steps < 20 && up !== undefined; steps++) {
        if (keys.has(up)) {
          keys.add(key);
          break;
        }
        up = this.parents.get(up);
      }
    }
    return keys;
  }
}

const rank = (kind) => {
  const at = kindOrder.indexOf(kind);
  return at < 0 ? kindOrder.length : at;
};

function compare(a, b) {
  const x = a.object;
  const y = b.object;
  return (x.namespace || "").localeCompare(y.namespace || "") || rank(x.kind) - rank(y.kind) || x.kind.localeCompare(y.kind) ||
    (x.kind === "ReplicaSet" ? y.created.localeCompare(x.created) : 0) || natural.compare(x.name, y.name);
}

const natural = new Intl.Collator("en", { numeric: true });
