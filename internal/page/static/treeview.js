// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

import { middle, number, plural, span } from "/format.js";
import { attribute, element, Rows, set } from "/rows.js";

const rowHeight = 28;

/** From how many objects on only the custom resources are shown at first. */
const manyObjects = 150;

/** After so many milliseconds another word begins. */
const typingPause = 1000;

const shortKinds = { HorizontalPodAutoscaler: "HPA", PodDisruptionBudget: "PDB" };

/** TreeView shows a forest as a tree that a keyboard can walk through. */
export class TreeView {
  text = "";
  chosen = null;
  typed = "";
  typedAt = 0;

  constructor(forest, choose, marksOf, several) {
    Object.assign(this, { forest, choose, marksOf, several });
    this.box = document.getElementById("tree");
    this.fold = document.getElementById("tree-fold");
    this.note = document.getElementById("tree-note");
    this.rows = new Rows(this.box, rowHeight, makeRow, (row, line) => this.fill(row, line));
    this.box.addEventListener("keydown", (event) => this.press(event));
    this.box.addEventListener("click", (event) => this.click(event));
    this.box.addEventListener("focus", () => {
      if (this.rows.active < 0 && this.rows.items.length > 0) this.rows.moveTo(0);
    });
  }

  /** render shows the forest as it is now. */
  render() {
    this.forest.sort();
    const lines = [];
    const few = this.forest.nodes.size < manyObjects;
    const matches = this.text ? this.matching() : null;
    const add = (node, depth, siblings, position) => {
      if (node.object.spent || (matches && !matches.has(node))) return;
      const open = matches ? true : node.open ?? few;
      const children = node.children.filter((c) => !c.object.spent && (!matches || matches.has(c)));
      lines.push({ node, depth, open, leaf: children.length === 0, siblings, position });
      if (open) children.forEach((child, i) => add(child, depth + 1, children.length, i + 1));
    };
    const top = this.several() ? this.grouped(matches) : this.forest.roots;
    top.forEach((root, i) => add(root, 0, top.length, i + 1));
    const current = this.rows.items[this.rows.active]?.node;
    if (current) this.rows.active = lines.findIndex((l) => l.node === current);
    this.rows.show(lines);
    this.explain(lines);
    const folds = lines.some(unfolded);
    set(this.fold, folds ? "Fold" : "Unfold");
    attribute(this.fold, "aria-label", folds ? "Fold all" : "Unfold all");
    this.fold.disabled = Boolean(matches) || lines.every((l) => l.leaf || l.node.space); // what is looked for is always unfolded
  }

  /** explain says which objects are not among the lines, and why. */
  explain(lines) {
    const { nodes, order } = this.forest;
    const shown = lines.filter((l) => !l.node.space).length;
    let spent = 0;
    for (const node of nodes.values()) if (node.object.spent && order.has(node.key)) spent++;
    const strangers = nodes.size - order.size;
    const folded = order.size - spent - shown;
    const reasons = [];
    if (folded > 0) reasons.push(`${number(folded)} ${this.text ? "do not match" : "folded"}`);
    if (strangers > 0) reasons.push(`${number(strangers)} belong${strangers === 1 ? "s" : ""} to no custom resource`);
    if (spent > 0) reasons.push(`${number(spent)} ${spent === 1 ? "is" : "are"} kept only to roll back to`);
    this.note.hidden = reasons.length === 0;
    set(this.note, reasons.length === 0 ? "" : `${number(shown)} of ${plural(nodes.size, "object")} shown: ${reasons.join(", ")}.`);
  }

  /** chooseMatch chooses the first object that is looked for, and the next one if that is chosen already. */
  chooseMatch() {
    if (!this.text) return;
    this.render(); // what was typed last may not be shown yet
    const found = this.rows.items.filter((line) => !line.node.space && this.isMatch(line.node));
    if (found.length === 0) return;
    const at = found.findIndex((line) => line.node === this.chosen);
    const { node } = found[(at + 1) % found.length];
    this.chosen = node;
    this.choose(node);
  }

  /** grouped puts what is in a namespace below that: a name in front of each object would leave no room for either. */
  grouped(matches) {
    const spaces = [...this.forest.spaces.values()].filter((s) => s.children.length > 0);
    spaces.sort((a, b) => a.object.name.localeCompare(b.object.name));
    for (const space of spaces) {
      const states = new Set(space.children.map((root) => root.object.state));
      space.object.state = ["bad", "busy"].find((state) => states.has(state)) || "plain";
      space.object.status = plural(space.children.length, "resource");
      if (matches && space.children.some((root) => matches.has(root))) matches.add(space);
    }
    return [...this.forest.roots.filter((root) => !root.object.namespace), ...spaces];
  }

  /** matching are the objects that are looked for, and those above them. */
  matching() {
    const found = new Set();
    for (const node of this.forest.nodes.values()) {
      if (this.isMatch(node)) for (let up = node; up && !found.has(up); up = up.parent) found.add(up);
    }
    return found;
  }

  isMatch({ object: o }) {
    const text = `${o.kind} ${o.namespace || ""}/${o.name} ${o.status || ""} ${o.reason || ""}`.toLowerCase();
    return this.text.split(/\s+/).every((word) => text.includes(word));
  }

  fill(row, line) {
    const { node, depth, open, leaf } = line;
    const o = node.object;
    const [twist, state, kind, place, name, mark, status] = row.children;
    // What belongs to an object is in the same namespace, unless that object is in none.
    const placed = Boolean(node.parent && o.namespace && node.parent.object.namespace !== o.namespace);
    twist.style.marginLeft = `${4 + depth * 16}px`;
    attribute(row, "aria-level", depth + 1);
    attribute(row, "aria-setsize", line.siblings);
    attribute(row, "aria-posinset", line.position);
    attribute(row, "aria-expanded", leaf ? null : open);
    attribute(row, "aria-selected", node === this.chosen);
    row.classList.toggle("chosen", node === this.chosen);
    row.classList.toggle("root", depth === 0);
    row.classList.toggle("space", Boolean(node.space)); // its name needs the room
    attribute(state, "data-state", o.state);
    const kindName = shortKinds[o.kind] || o.kind;
    set(kind, kindName);
    place.hidden = !placed;
    set(place, `${o.namespace}/`);
    attribute(name, "title", o.namespace ? `${o.namespace}/${o.name}` : o.name);
    const text = node.space ? String(node.children.length) : (o.status || "") + (o.reason && o.fleet ? ` ${o.reason}` : "");
    set(status, text);
    attribute(status, "data-state", o.state);
    const loops = this.marksOf(node.key);
    if (mark.hidden === Boolean(loops)) mark.hidden = !loops;
    if (loops) set(mark, "∞ loop");
    // Kind, badge and status keep their room, and what is left is the name's.
    const taken = 64 + depth * 16 + (node.space ? 0 : 7 + widthOf(kindName, 400)) + (placed ? widthOf(`${o.namespace}/`, 400) : 0) +
      (loops ? 7 + 14 + widthOf("∞ loop", 600) : 0) + (text ? 7 + Math.min(9 + 0.93 * widthOf(text, 400), 0.46 * this.rows.width) : 0);
    set(name, middle(o.name, Math.max(40, this.rows.width - taken), (part) => widthOf(part, depth === 0 ? 650 : 550)));
    const words = [node.space ? "Namespace" : kindName, placed ? `${o.namespace}/${o.name}` : o.name, loops && "∞ loop", node.space ? o.status : text];
    attribute(row, "aria-label", words.filter(Boolean).join(" "));
  }

  click(event) {
    const line = this.rows.items[this.rows.at(event)];
    if (!line) return;
    this.rows.moveTo(this.rows.at(event));
    if (event.target.closest(".twist")) this.toggle(line);
    else this.select(line.node);
  }

  select(node) {
    this.chosen = this.chosen === node ? null : node;
    this.choose(this.chosen);
  }

  /** show brings an object into sight, which the card below may have covered. */
  show(node) {
    this.rows.size = this.box.clientHeight;
    const at = node ? this.rows.items.findIndex((l) => l.node === node) : -1;
    if (at >= 0) this.rows.moveTo(at);
    else this.rows.draw();
  }

  toggle(line, open = !line.open) {
    line.node.open = open;
    this.render();
  }

  /** toggleAll unfolds everything, or folds it if something is unfolded. */
  toggleAll() {
    const open = !this.rows.items.some(unfolded);
    for (const node of this.forest.nodes.values()) node.open = open;
    this.render();
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = this.rows.active;
    const line = this.rows.items[at];
    const act = {
      ArrowDown: () => this.rows.moveTo(at + 1), ArrowUp: () => this.rows.moveTo(at - 1), Home: () => this.rows.moveTo(0),
      End: () => this.rows.moveTo(this.rows.items.length - 1), PageDown: () => this.rows.moveTo(at + this.rows.page),
      PageUp: () => this.rows.moveTo(at - this.rows.page), ArrowRight: () => this.right(line, at), ArrowLeft: () => this.left(line, at),
      Enter: () => line && this.select(line.node), " ": () => line && this.select(line.node), "*": () => this.unfoldSiblings(line),
    }[event.key];
    if (!act) return this.type(event);
    event.preventDefault();
    event.stopPropagation();
    act();
  }

  /** type goes to the next object whose name begins with what is typed. In the tree, letters mean nothing else. */
  type(event) {
    const typed = event.timeStamp - this.typedAt < typingPause ? this.typed : "";
    const { key } = event;
    if (key.length !== 1 || !(/\p{L}/u.test(key) || (typed && /[-.\d]/.test(key)))) return;
    event.preventDefault();
    event.stopPropagation();
    this.typed = typed + key.toLowerCase();
    this.typedAt = event.timeStamp;
    // The same letter again goes on to the next that begins with it.
    const wanted = [...this.typed].every((letter) => letter === this.typed[0]) ? this.typed[0] : this.typed;
    const { items, active } = this.rows;
    const first = wanted.length === 1 ? active + 1 : Math.max(0, active);
    for (let i = 0; i < items.length; i++) {
      const at = (first + i) % items.length;
      if (items[at].node.object.name.toLowerCase().startsWith(wanted)) return this.rows.moveTo(at);
    }
  }

  right(line, at) {
    if (!line || line.leaf) return;
    if (line.open) this.rows.moveTo(at + 1);
    else this.toggle(line, true);
  }

  left(line, at) {
    if (!line) return;
    if (line.open && !line.leaf) return this.toggle(line, false);
    for (let i = at - 1; i >= 0; i--) if (this.rows.items[i].depth < line.depth) return this.rows.moveTo(i);
  }

  unfoldSiblings(line) {
    for (const { node, depth } of this.rows.items) if (depth === line?.depth) node.open = true;
    this.render();
  }
}

const ruler = document.createElement("canvas").getContext("2d");
const widths = new Map();
let family = "";

/** widthOf is how wide a text is in the tree. It is asked for again and again, so it is remembered. */
function widthOf(text, weight) {
  const key = `${weight} ${text}`;
  let width = widths.get(key);
  if (width === undefined) {
    family ||= getComputedStyle(document.body).fontFamily;
    ruler.font = `${weight} 13px ${family}`;
    width = ruler.measureText(text).width;
    if (widths.size > 5000) widths.clear();
    widths.set(key, width);
  }
  return width;
}

/** Namespaces are only for order, and stay as they are when everything is folded. */
const unfolded = (line) => line.open && !line.leaf && !line.node.space;

function makeRow(index) {
  const row = element("div", "");
  row.id = `object-${index}`;
  row.setAttribute("role", "treeitem");
  const twist = element("span", "twist");
  const state = element("span", "state");
  for (const part of [twist, state]) part.setAttribute("aria-hidden", "true");
  row.append(twist, state, element("span", "kind"), element("span", "place"), element("span", "name"), element("span", "mark loop"), element("span", "status"));
  row.querySelector(".mark").hidden = true;
  return row;
}

/** Conditions that are bad news when they are true. */
const badWhenTrue = new Set(["Stalled", "Reconciling", "ReplicaFailure", "ScalingLimited", "DisruptionTarget"]);

/** showCard shows the chosen object with its conditions below the tree. */
export function showCard(card, node, now) {
  card.hidden = !node;
  if (!node) return;
  const o = node.object;
  const state = element("span", "state");
  state.dataset.state = node.gone ? "plain" : o.state;
  state.setAttribute("aria-hidden", "true");
  const parts = [element("h2", "", state, `${o.kind} ${o.name}`)];
  const ago = (then) => span(Math.max(0, now - then));
  const about = (...texts) => parts.push(element("p", "sub", texts.filter(Boolean).join(" · ")));
  if (node.gone) {
    about(o.namespace, `deleted ${ago(node.gone)} ago`);
    about("Its history is still shown on the right.");
    return card.replaceChildren(...parts);
  }
  about(o.namespace, [o.status, o.reason].filter(Boolean).join(", "), o.detail, o.created && `${ago(Date.parse(o.created))} old`);
  if (o.message && o.state === "bad") parts.push(element("p", "message", o.message));
  const list = element("ul", "conditions");
  for (const c of o.conditions || []) {
    const item = element("li", "", element("span", "", element("b", "", c.type), " ", element("span", "why", `${c.status}${c.reason ? `, ${c.reason}` : ""}`)));
    const good = c.status === "Unknown" ? "unknown" : (c.status === "True") !== badWhenTrue.has(c.type) ? "yes" : "no";
    item.dataset.good = good;
    if (c.since && !c.since.startsWith("0001")) item.append(element("time", "", ago(Date.parse(c.since))));
    if (c.message) item.append(element("p", "", c.message));
    list.append(item);
  }
  if (list.children.length > 0) parts.push(list);
  card.replaceChildren(...parts);
}
