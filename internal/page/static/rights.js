// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

import { instant, number, plural, span } from "/format.js";
import { element, set } from "/rows.js";

const byId = (id) => document.getElementById(id);
const refreshEvery = 2000;
const verbOrder = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];

/** What a right can be, in the order in which it matters: a sign, a word, and what that means. */
export const states = {
  missing: ["✕", "Missing", "needed, but not granted"],
  refused: ["!", "Refused", "requested and refused; only you know whether it is needed"],
  unused: ["○", "Unused", "granted, but not used in these recordings"],
  broader: ["≈", "Broader", "used, but granted for more than was used"],
  kept: ["·", "Kept", "not used in these recordings, but part of a manager"],
  used: ["✓", "Used", "granted and used"],
};

/** Rights shows what the operator may do, and what it did. */
export class Rights {
  report = null;
  shown = new Set(); // states that are shown; all if it is empty
  at = null; // the key of the cell that the keyboard is at, or was clicked

  constructor(app) {
    this.app = app;
    this.box = byId("rights");
    byId("rights-chips").append(...Object.entries(states).map(([state, [sign, word, meaning]]) => {
      const chip = element("button", `chip right-${state}`, `${sign} ${word} `, element("b", "", "0"));
      Object.assign(chip, { type: "button", title: meaning });
      chip.dataset.state = state;
      chip.setAttribute("aria-pressed", "false");
      chip.addEventListener("click", () => this.toggle(state));
      return chip;
    }));
    this.box.addEventListener("click", (event) => this.go(event.target.closest("[data-cell]")));
    this.box.addEventListener("keydown", (event) => this.press(event));
    this.box.addEventListener("focus", () => this.go(this.find(this.at) || this.box.querySelector("[data-cell]")));
  }

  open() {
    this.close();
    this.ask();
    this.timer = setInterval(() => document.hidden || this.ask(), refreshEvery);
  }

  close() {
    clearInterval(this.timer);
  }

  toggle(state) {
    if (!this.shown.delete(state)) this.shown.add(state);
    this.draw();
  }

  async ask() {
    let text;
    try {
      const answer = await fetch("/api/rights");
      text = await answer.text();
      if (!answer.ok) {
        this.problem = JSON.parse(text).error;
        return this.draw();
      }
    } catch {
      return; // the connection's state is shown elsewhere
    }
    this.problem = null;
    if (text === this.text) return this.ages();
    this.text = text;
    this.report = JSON.parse(text);
    this.rows = rowsOf(this.report);
    this.draw();
  }

  /** draw shows the table, and the evidence of the selected cell. */
  draw() {
    const { report } = this;
    const counts = {};
    for (const row of this.rows || []) for (const cell of row.cells.values()) counts[cell.state] = (counts[cell.state] || 0) + 1;
    for (const chip of byId("rights-chips").children) {
      const count = counts[chip.dataset.state] || 0;
      set(chip.querySelector("b"), number(count));
      chip.classList.toggle("some", count > 0);
      chip.setAttribute("aria-pressed", this.shown.has(chip.dataset.state));
    }
    const message = this.problem ? ["The rights cannot be read", this.problem] : !report ? ["Comparing the rights", "They are compared with the requests of the operator."]
      : this.rows.length === 0 ? ["No right was used yet", "Create, change and delete objects that the operator reconciles."] : false;
    this.app.controls.empty("rights-empty", message);
    this.box.hidden = byId("rights-lower").hidden = Boolean(message);
    if (message) return;
    const requests = report.recordings.reduce((sum, r) => sum + r.requests, 0);
    set(byId("rights-title"), report.granted ? `Granted by ${report.granted}` : "The granted rights are unknown");
    set(byId("rights-figures"), `${plural(requests, "request")}${report.identity ? ` as ${report.identity}` : ""} in ${plural(report.recordings.length, "recording")}`);
    this.table();
    this.evidence();
  }

  visible() {
    const { text } = this.app.filter;
    return this.rows.map((row) => {
      const cells = new Map([...row.cells].filter(([, cell]) => (this.shown.size === 0 || this.shown.has(cell.state)) && (!text || cell.text.includes(text))));
      return { ...row, cells };
    }).filter((row) => row.cells.size > 0);
  }

  table() {
    const focused = this.box.contains(document.activeElement);
    const rows = this.visible();
    const verbs = [...new Set(rows.flatMap((row) => [...row.cells.keys()]))].sort(compareVerbs);
    this.box.style.setProperty("--verbs", Math.max(1, verbs.length));
    const head = element("tr", "", element("th", "", "Resource"), ...verbs.map((verb) => element("th", "", verb)));
    for (const th of head.children) th.scope = "col";
    const body = element("tbody", "", ...rows.map((row) => {
      const name = element("th", "", ...nameParts(row));
      name.scope = "row";
      name.title = row.object;
      return element("tr", "", name, ...verbs.map((verb) => this.cell(row, verb)));
    }));
    this.box.replaceChildren(element("thead", "", head), body);
    const now = this.find(this.at);
    if (!now) this.at = null;
    const first = now || this.box.querySelector("[data-cell]");
    if (first) first.tabIndex = 0;
    this.box.tabIndex = first ? -1 : 0;
    if (now) now.setAttribute("aria-selected", "true");
    if (focused) first?.focus();
  }

  cell(row, verb) {
    const cell = row.cells.get(verb);
    if (!cell) return element("td", "");
    const [sign, word] = states[cell.state];
    const count = cell.need?.evidence.requests || 0;
    const td = element("td", `right-${cell.state}`, element("span", "pill", sign, count > 0 ? element("b", "", short(count)) : null));
    td.dataset.cell = cell.key;
    td.tabIndex = -1;
    td.title = `${word}: ${verb} ${row.object}${count > 0 ? `, ${plural(count, "request")}` : ""}`;
    td.setAttribute("aria-label", td.title);
    td.setAttribute("aria-selected", "false");
    return td;
  }

  find(key) {
    return key ? [...this.box.querySelectorAll("[data-cell]")].find((td) => td.dataset.cell === key) : null;
  }

  /** go moves to a cell and shows what it is based on. */
  go(td) {
    if (!td) return;
    for (const other of this.box.querySelectorAll("[data-cell]")) {
      other.tabIndex = other === td ? 0 : -1;
      other.setAttribute("aria-selected", other === td);
    }
    this.at = td.dataset.cell;
    td.focus();
    this.evidence();
  }

  leave() {
    if (!this.at) return false;
    this.at = null;
    this.draw();
    return true;
  }

  press(event) {
    const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!by || event.ctrlKey || event.metaKey || event.altKey) return;
    const cells = [...this.box.querySelectorAll("[data-cell]")];
    const from = document.activeElement.closest("[data-cell]");
    if (!from) return;
    event.preventDefault();
    event.stopPropagation();
    if (by[0] !== 0) return this.go(cells[cells.indexOf(from) + by[0]]);
    // To the nearest cell of the next row in that direction.
    const rows = [...this.box.tBodies[0].rows].filter((row) => row.querySelector("[data-cell]"));
    const row = rows[rows.indexOf(from.closest("tr")) + by[1]];
    const near = row && [...row.querySelectorAll("[data-cell]")].reduce((a, b) => (Math.abs(b.cellIndex - from.cellIndex) < Math.abs(a.cellIndex - from.cellIndex) ? b : a));
    this.go(near);
  }

  /** evidence says what rights are based on: of the cell that is chosen, or of all that differ. */
  evidence() {
    const all = this.visible().flatMap((row) => [...row.cells.values()]);
    const order = Object.keys(states);
    const shown = this.at ? all.filter((cell) => cell.key === this.at) : all.filter((c) => this.shown.size > 0 || !["used", "kept"].includes(c.state));
    shown.sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state));
    set(byId("evidence-title"), this.at ? "Evidence" : this.shown.size > 0 ? "Evidence" : "What differs");
    const lines = shown.map((cell) => element("li", `right-${cell.state}`, element("span", "pill", states[cell.state][0], " ", states[cell.state][1]), element("div", "", element("b", "", `${cell.verb} ${cell.object}`), ...cell.lines.map((line) => element("p", "", line)), ageOf(cell))));
    if (lines.length === 0) lines.push(element("li", "calm", this.report.granted ? "The granted rights are exactly the needed rights." : "Select a right to see its evidence."));
    for (const note of this.report.notes || []) lines.push(element("li", "calm", `Note: ${note}`));
    byId("evidence").replaceChildren(...lines);
  }

  ages() {
    for (const p of byId("evidence").querySelectorAll("[data-last]")) set(p, ageText(p.dataset));
  }
}

/** rowsOf makes a table of a report, a row for each resource and a cell for each verb. */
export function rowsOf(report) {
  const rows = new Map();
  const cellOf = (right, verb) => {
    const object = right.url || nameOf(right.group, right.resource);
    let row = rows.get(object);
    if (!row) rows.set(object, (row = { object, group: right.group || "", resource: right.resource, cells: new Map() }));
    let cell = row.cells.get(verb);
    if (!cell) row.cells.set(verb, (cell = { key: `${verb} ${object}`, verb, object, state: "used", lines: [] }));
    return cell;
  };
  const differing = new Set(report.findings.filter((f) => f.type === "missing" || f.type === "refused").flatMap((f) => f.verbs.map((v) => `${v} ${f.url || nameOf(f.group, f.resource)}`)));
  for (const need of report.needs) {
    const cell = cellOf(need, need.verb);
    cell.need = need;
    if (report.granted && !need.granted && differing.has(cell.key)) cell.state = need.refused ? "refused" : "missing";
    else if (report.granted && !need.granted) cell.lines.push("Not granted, and not needed: another right allows the same.");
    if (need.implied && !need.evidence.requests) cell.lines.push("No request used it.");
    for (const why of need.why || []) cell.lines.push(sentence(why));
    const at = need.namespaces?.length ? `in namespace ${need.namespaces.join(", ")}` : "";
    const only = need.names?.length ? `only for ${need.names.join(", ")}` : "";
    if (at || only) cell.lines.push(sentence([at, only].filter(Boolean).join(", ")));
  }
  for (const finding of report.findings) {
    if (finding.type === "missing" || finding.type === "refused") continue;
    for (const verb of finding.verbs) {
      const cell = cellOf(finding, verb);
      cell.state = finding.type;
      if (finding.message) cell.lines.push(sentence(finding.message));
      const from = `${finding.from}${finding.namespace ? ` in ${finding.namespace}` : ""}${finding.markers?.length ? ` (${finding.markers.join(", ")})` : ""}`;
      cell.lines.push(`Granted by ${from}.`);
    }
  }
  for (const row of rows.values()) for (const cell of row.cells.values()) cell.text = `${cell.verb} ${cell.object} ${cell.state} ${cell.lines.join(" ")}`.toLowerCase();
  return [...rows.values()].sort((a, b) => (a.object < b.object ? -1 : 1));
}

/** nameParts shows the group of a resource after its name, where it may be cut off. */
export const nameParts = ({ object, group, resource }) => (group && resource ? [`${resource} `, element("span", "group", group)] : [object]);

function nameOf(group, resource) {
  const [base, ...sub] = (resource || "").split("/");
  return `${base}${group ? `.${group}` : ""}${sub.length > 0 ? `/${sub.join("/")}` : ""}`;
}

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (text.endsWith(".") ? "" : ".");

function compareVerbs(a, b) {
  const place = (verb) => (verbOrder.includes(verb) ? verbOrder.indexOf(verb) : verbOrder.length);
  return place(a) - place(b) || (a < b ? -1 : 1);
}

const short = (n) => (n < 1000 ? String(n) : n < 10_000 ? `${(n / 1000).toFixed(1)}k` : `${Math.round(n / 1000)}k`);

/** ageOf says how often a right was used, when last and by whom. */
function ageOf({ need }) {
  const e = need?.evidence;
  if (!e?.requests) return null;
  const p = element("p", "proof");
  const by = e.reconcile ? ` in reconcile #${e.reconcile.id}${e.reconcile.name ? ` of ${e.reconcile.controller} ${e.reconcile.namespace ? `${e.reconcile.namespace}/` : ""}${e.reconcile.name}` : ""}` : "";
  const refused = e.refused === 0 || !e.refused ? "" : e.refused === e.requests ? ", all refused" : `, ${number(e.refused)} refused`;
  Object.assign(p.dataset, { last: e.last ? instant(e.last) : "", before: `${plural(e.requests, "request")}${refused}`, after: `${by}${e.request ? `; request #${e.request} of ${e.recording}` : ""}` });
  set(p, ageText(p.dataset));
  return p;
}

const ageText = ({ last, before, after }) => `${before}${last ? `, last ${span(Math.max(0, Date.now() - Number(last)))} ago` : ""}${after}.`;
