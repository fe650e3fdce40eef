// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

import { clock, instant, number, placedName, plural } from "/format.js";
import { openHelp } from "/help.js";
import { showLegend } from "/legend.js";
import { element, set } from "/rows.js";
import { remember } from "/settings.js";

const byId = (id) => document.getElementById(id);

const connectionWords = {
  connecting: "Connecting", live: "Live", lost: "Connection lost, reconnecting", crowded: "Too many open pages: close one", paused: "Paused while hidden",
};
/** The lines that an operator needs to record why it reconciles. */
const twoLines = ["NewClient: why.New(why.Options{}).NewClient,   // in ctrl.Options, where the manager is made", "why.ControllerManagedBy(mgr, why.RecorderOf(mgr)).   // instead of ctrl.NewControllerManagedBy(mgr)."];
const themes = ["auto", "light", "dark"];
const themeWords = { auto: "automatic", light: "light", dark: "dark" };
const themeSigns = { auto: "◐", light: "☀", dark: "☾" };

/** Controls are the filters, buttons and texts around the parts. */
export class Controls {
  constructor(app) {
    this.app = app;
    this.filters();
    this.buttons();
    this.tabs();
    this.grips();
    this.view("timeline");
    this.showTheme();
    showLegend();
    app.timeline.onFollow = (on) => this.follow(on);
  }

  filters() {
    const { filter } = this.app;
    for (const name of ["controller", "namespace", "outcome", "cause"]) {
      byId(name).addEventListener("change", (event) => {
        filter[name] = event.target.value;
        this.changed();
      });
    }
    byId("search").addEventListener("input", (event) => {
      filter.text = event.target.value.trim().toLowerCase();
      this.changed();
    });
    byId("tree-search").addEventListener("input", (event) => this.findObject(event.target.value));
    byId("tree-search").addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.isComposing) this.app.treeView.chooseMatch();
    });
    byId("filters-open").addEventListener("click", () => this.openFilters(!byId("filters").classList.contains("open")));
    byId("views").addEventListener("click", (event) => {
      const button = event.target.closest("[data-view]");
      if (!button) return;
      if (this.app.details.pass) this.app.close(); // it lies above all of them
      this.view(button.dataset.view);
    });
    byId("findings").addEventListener("click", (event) => {
      const chip = event.target.closest("[data-finding]");
      if (chip) this.toggleFinding(chip.dataset.finding);
    });
    byId("wire-chips").addEventListener("click", (event) => {
      const chip = event.target.closest("[data-wire]");
      if (!chip) return;
      if (!filter.wire.delete(chip.dataset.wire)) filter.wire.add(chip.dataset.wire);
      this.changed();
    });
    byId("wire-all").addEventListener("click", () => {
      this.app.traffic.leave();
      byId("traffic").focus();
    });
    byId("stages").addEventListener("click", (event) => {
      const button = event.target.closest("[data-stage]");
      if (button) this.view(button.dataset.stage);
    });
    byId("clear").addEventListener("click", () => this.clear());
  }

  toggleFinding(finding) {
    const { findings } = this.app.filter;
    if (!findings.delete(finding)) findings.add(finding);
    this.changed();
  }

  findObject(text) {
    this.app.treeView.text = text.trim().toLowerCase();
    this.app.treeChanged = true;
    this.app.wake();
  }

  /** view says which part is seen where there is room for one. Beside the tree, timeline, traffic and rights take turns. */
  view(name) {
    document.body.dataset.view = name;
    for (const button of byId("views").children) button.setAttribute("aria-pressed", button.dataset.view === name);
    if (name === "side") return;
    const stage = name === "list" ? "timeline" : name;
    if (document.body.dataset.stage === stage) return;
    document.body.dataset.stage = stage;
    for (const button of byId("stages").children) button.setAttribute("aria-pressed", button.dataset.stage === stage);
    if (stage === "rights") this.app.rights.open();
    else this.app.rights.close();
    this.app.traffic.touch();
    this.app.timeline.touch();
  }

  /** stages shows what can be shown beside the tree. */
  stages({ traffic, rights, until }) {
    const has = { timeline: true, traffic, rights };
    for (const button of byId("stages").children) button.hidden = !has[button.dataset.stage];
    for (const button of byId("views").children) button.hidden = button.dataset.view in has && !has[button.dataset.view];
    byId("stages").hidden = !traffic && !rights;
    if (!has[document.body.dataset.stage]) this.view("timeline");
    if (!until) return;
    byId("traffic-range").value = "0";
    this.app.traffic.range = 0;
    byId("follow").hidden = true;
  }

  openFilters(open) {
    byId("filters").classList.toggle("open", open);
    byId("filters-open").setAttribute("aria-expanded", open);
  }

  /** leave takes back what was typed or chosen in a field, and leaves it. */
  leave(field) {
    if (field.id in this.app.filter || field.id === "search") {
      field.value = "";
      this.app.filter[field.id === "search" ? "text" : field.id] = "";
      this.changed();
    } else if (field.id === "tree-search") {
      field.value = "";
      this.findObject("");
    }
    field.blur();
  }

  clear() {
    this.app.filter.clear();
    byId("tree-search").value = "";
    this.findObject("");
    for (const id of ["search", "controller", "namespace", "outcome", "cause"]) byId(id).value = "";
    this.changed();
  }

  changed() {
    const { filter } = this.app;
    for (const name of ["controller", "namespace", "outcome", "cause"]) byId(name).classList.toggle("set", Boolean(filter[name]));
    for (const chip of byId("findings").children) chip.setAttribute("aria-pressed", filter.findings.has(chip.dataset.finding));
    for (const chip of byId("wire-chips").children) chip.setAttribute("aria-pressed", filter.wire.has(chip.dataset.wire));
    byId("clear").hidden = !filter.active;
    byId("filters-open").classList.toggle("some", filter.active);
    this.app.refilter();
  }

  buttons() {
    const { timeline, treeView } = this.app;
    byId("follow").addEventListener("click", () => timeline.follow(!timeline.following));
    byId("zoom-in").addEventListener("click", () => timeline.zoom(1.5));
    byId("zoom-out").addEventListener("click", () => timeline.zoom(1 / 1.5));
    byId("range").addEventListener("change", (event) => {
      timeline.time.range = Number(event.target.value);
      timeline.touch();
    });
    byId("unscope").addEventListener("click", () => {
      this.app.choose(null);
      byId("tree").focus();
    });
    byId("scale").addEventListener("click", (event) => {
      const button = event.target.closest("[data-scale]");
      if (button) this.scale(button.dataset.scale);
    });
    byId("tree-fold").addEventListener("click", () => treeView.toggleAll());
    byId("theme").addEventListener("click", () => this.nextTheme());
    byId("help-open").addEventListener("click", openHelp);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.repaint());
  }

  scale(scale) {
    this.app.timeline.scale = scale;
    for (const button of byId("scale").children) button.setAttribute("aria-pressed", button.dataset.scale === scale);
    this.app.tick();
    this.app.timeline.touch();
  }

  follow(on) {
    byId("follow").setAttribute("aria-pressed", on);
    byId("follow").textContent = on ? "Following" : "Paused";
    byId("follow").title = on ? "Stop following" : "Follow what happens";
  }

  tabs() {
    const tabs = [byId("tab-list"), byId("tab-totals")];
    for (const tab of tabs) {
      tab.addEventListener("click", () => this.tab(tab.id));
      tab.addEventListener("keydown", (event) => {
        if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
        const other = tabs[1 - tabs.indexOf(tab)];
        this.tab(other.id);
        other.focus();
      });
    }
  }

  tab(id) {
    const totals = id === "tab-totals";
    for (const [tab, panel, chosen] of [["tab-list", "panel-list", !totals], ["tab-totals", "panel-totals", totals]]) {
      byId(tab).setAttribute("aria-selected", chosen);
      byId(tab).tabIndex = chosen ? 0 : -1;
      byId(panel).hidden = !chosen;
    }
    if (totals) this.app.totals.open();
    else this.app.totals.close();
  }

  grips() {
    const style = document.documentElement.style;
    const make = (id, name, least, most, measure) => {
      const grip = byId(id);
      const move = (value) => {
        const size = Math.round(Math.max(least, Math.min(most(), value)));
        style.setProperty(name, `${size}px`);
        grip.setAttribute("aria-valuenow", size);
      };
      grip.addEventListener("pointerdown", (event) => {
        grip.setPointerCapture(event.pointerId);
        grip.onpointermove = (e) => move(measure(e));
      });
      grip.addEventListener("pointerup", () => (grip.onpointermove = null));
      grip.addEventListener("keydown", (event) => {
        const by = { ArrowLeft: -20, ArrowDown: -20, ArrowRight: 20, ArrowUp: 20 }[event.key];
        if (!by) return;
        event.preventDefault();
        move(Number(grip.getAttribute("aria-valuenow")) + by);
      });
    };
    make("side-grip", "--side", 220, () => innerWidth * 0.5, (e) => e.clientX);
    make("list-grip", "--lower", 80, () => innerHeight - 320, (e) => innerHeight - e.clientY);
  }

  nextTheme() {
    const next = themes[(themes.indexOf(document.documentElement.dataset.theme || "auto") + 1) % themes.length];
    if (next === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    remember("theme", next);
    this.showTheme();
    this.repaint();
  }

  repaint() {
    this.app.timeline.repaint();
    this.app.traffic.repaint();
    showLegend();
  }

  showTheme() {
    const now = document.documentElement.dataset.theme || "auto";
    byId("theme").textContent = themeSigns[now];
    byId("theme").setAttribute("aria-label", `Theme: ${themeWords[now]}`);
    byId("theme").title = `Theme: ${themeWords[now]}`;
  }

  title(text) {
    set(byId("title"), text || "");
    document.title = text ? `opdock, ${text}` : "opdock";
  }

  scope(node) {
    const name = node && placedName(node.object, this.app.placed);
    set(byId("scope"), !node ? "All objects" : node.gone ? `${name} (deleted) and the objects it owned` : `${name} and the objects it owns`);
    byId("unscope").hidden = !node;
  }

  rate(events) {
    set(byId("figures"), this.app.until ? this.app.figures : `${this.app.figures} · ${events < 10 ? Math.round(events * 10) / 10 : Math.round(events)} events/s`);
  }

  /** update shows what must not wait: whether the connection is there, and why there is nothing to see. */
  update() {
    const { app } = this;
    const states = [app.objects.state, app.recorded ? app.records.state : "live"];
    const state = ["lost", "crowded", "connecting", "paused"].find((s) => states.includes(s)) || "live";
    const pill = byId("connection");
    if (pill.dataset.state !== state) pill.dataset.state = state;
    set(pill, state === "live" && app.until ? "Recording" : connectionWords[state]);
    if (document.body.dataset.connection !== state) document.body.dataset.connection = state;
    app.timeline.live = state === "live" || state === "connecting";
    this.range();
    this.empties(state);
  }

  /** range can be chosen where it changes something: steps fold the time. A list that the user has just opened stays. */
  range() {
    const range = byId("range");
    const off = this.app.timeline.steps && document.activeElement !== range;
    if (range.disabled === off && range.title) return;
    range.disabled = off;
    range.title = off ? "Steps fold the time: choose Time for a range" : "Length of the visible time range";
  }

  empties(state) {
    const { app } = this;
    const known = app.forest.nodes.size > 0 || app.treeView.rows.items.length > 0;
    this.empty("tree-empty", !known && state !== "connecting" && ["No objects yet", "Custom resources appear here as soon as there are any.", "opdock kubectl apply -f app.yaml"]);
    byId("tree").hidden = !known;
    let message = false;
    if (app.view.rows.size === 0) {
      if (state === "crowded") message = ["Too many pages are open", "This page continues when another one is closed."];
      else if (state === "lost") message = ["Connection lost", "The page reconnects when opdock responds again."];
      else if (!app.recorded) message = ["No reconciles are recorded here", "The operator runs without a recorder. The tree is still live."];
      else if (app.silent) message = ["This operator does not use why: tree and changes only", "The two lines below make it record why it reconciles."];
      else if (app.filter.active) message = ["Nothing matches the filters", "Clear them, or wait until something does."];
      else if (app.treeView.chosen?.gone) message = ["No changes of this object are known", "It was deleted."];
      else if (app.filter.scope) message = ["Nothing has happened to it yet", "Change it to see the effects."];
      else if (state === "live") message = ["Nothing has happened yet", "Change something to see the effects.", "opdock kubectl edit appservice shop"];
    }
    this.empty("timeline-empty", message);
    const silent = app.silent && ["This operator does not use why: tree and changes only", "Two lines make it record why it reconciles. docs/why.md explains them.", ...twoLines];
    this.empty("list-empty", silent);
    byId("list").hidden = Boolean(silent);
  }

  empty(id, message) {
    const box = byId(id);
    const text = message ? message.join("\n") : "";
    if (box.said === text) return;
    box.said = text;
    box.hidden = !message;
    if (message) box.replaceChildren(element("strong", "", message[0]), element("span", "", message[1]), ...message.slice(2).map((line) => element("code", "", line)));
  }

  /** words brings the texts up to date that come from what is shown. */
  words() {
    const { app } = this;
    const { view, store } = app;
    set(byId("count"), number(view.passes.length));
    for (const chip of byId("findings").children) {
      const count = view.counts[chip.dataset.finding] || 0;
      set(chip.querySelector("b"), number(count));
      chip.classList.toggle("some", count > 0);
    }
    this.options("controller", store.controllers, "All controllers");
    this.options("namespace", store.namespaces, "All namespaces");
    const notes = app.recorded ? operatorNotes(app.operator) : ["changes only, the operator runs without a recorder"];
    const lost = store.lost + app.records.lost + app.objects.lost;
    if (store.dropped > 0) notes.push(`${plural(store.dropped, "older reconcile")} dropped`);
    if (lost > 0) notes.push(`${plural(lost, "message")} missed`);
    byId("dropped").hidden = notes.length === 0;
    set(byId("dropped"), notes.join(", "));
    document.getElementById("timeline").setAttribute("aria-label", `Timeline of ${plural(view.rows.size, "object")} with ${plural(view.passes.length, "reconcile")}`);
  }

  options(id, values, all) {
    const select = byId(id);
    const sorted = [...values].sort();
    const names = sorted.join("\n");
    if (select.names === names) return;
    select.names = names;
    const chosen = select.value;
    select.replaceChildren(new Option(all, ""), ...sorted.map((v) => new Option(v, v)));
    select.value = chosen;
  }
}

/** operatorNotes say what becomes of an operator that runs in a process of its own. */
function operatorNotes(operator) {
  if (!operator) return [];
  const notes = { starting: ["the operator starts"], silent: ["tree and changes only, the operator does not use why"], ended: ["the operator has ended"] }[operator.state] || [];
  const again = operator.starts.length - 1;
  if (again > 0) notes.push(`the operator was restarted${again > 1 ? ` ${again} times, last` : ""} at ${clock(instant(operator.starts[again]), false)}`);
  return notes;
}
