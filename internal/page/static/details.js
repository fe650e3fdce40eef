// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

import { causeText, causeWords, clock, findingWords, nanoseconds, objectKey, objectName, outcomeWords, plural, span, writerName, writersOf } from "/format.js";
import { element } from "/rows.js";

/** Details opens a reconcile: what led to it field by field, what it did, and what that led to. */
export class Details {
  constructor(store, actions) {
    Object.assign(this, { store, actions }); // actions: open, close, zoom
    this.box = document.getElementById("details");
  }

  show(pass, focus) {
    this.pass = pass;
    this.box.hidden = !pass;
    // What lies below it is not to be reached either.
    document.querySelector(".side").inert = Boolean(pass);
    if (!pass) return this.box.replaceChildren();
    const title = element("h2", "", `${objectName(pass.object)}`);
    title.tabIndex = -1;
    const button = (text, label, act) => {
      const made = element("button", "quiet", text);
      made.type = "button";
      made.setAttribute("aria-label", label);
      made.addEventListener("click", act);
      return made;
    };
    const head = element("header", "",
      element("div", "line", title, button("Show", "Show it in the timeline", () => this.actions.zoom(pass)), button("✕", "Close", () => this.actions.close())),
      element("p", "sub", `Reconcile #${pass.id} by ${pass.controller} at ${clock(pass.start)}${pass.object.namespace ? ` in ${pass.object.namespace}` : ""}`));
    this.box.replaceChildren(head, ...this.body(pass));
    this.box.scrollTop = 0;
    if (focus) title.focus();
  }

  body(pass) {
    const parts = [facts(pass)];
    if (pass.error) parts.push(element("p", "error", pass.error));
    const findings = (pass.raw.findings || []).map((f) => this.finding(f));
    if (findings.length > 0) parts.push(element("ul", "findings", ...findings));
    parts.push(element("h3", "", pass.folded === 1 ? "Because of one event" : `Because of ${plural(pass.folded, "event")}, folded into one reconcile`));
    const causes = element("ul", "", ...pass.causes.map((c) => this.cause(c, pass)));
    if (pass.folded > pass.causes.length) causes.append(element("li", "step", element("div", "who", `and ${plural(pass.folded - pass.causes.length, "more event")} that were not kept`)));
    parts.push(causes);
    parts.push(element("h3", "", pass.written === 0 ? "It wrote nothing" : `It wrote ${pass.written === 1 ? "once" : `${pass.written} times`}`));
    if (pass.writes.length > 0) parts.push(element("ul", "", ...pass.writes.map((w) => this.write(w))));
    if (pass.raw.requeueAfter) parts.push(element("p", "sub", `It requested a requeue after ${span(nanoseconds(pass.raw.requeueAfter))}.`));
    const later = pass.ledTo.filter((p) => !p.gone);
    if (later.length > 0) {
      parts.push(element("h3", "", later.length === 1 ? "This triggered one reconcile" : `This triggered ${later.length} reconciles`));
      parts.push(element("p", "", ...later.flatMap((p, i) => [i > 0 ? ", " : "", this.link(p)])));
    }
    return parts;
  }

  finding(f) {
    const item = element("li", f.type === "self-inflicted" ? "self" : f.type, element("b", "", findingWords[f.type] || f.type), f.message);
    if (f.writers?.length > 1) item.append(element("div", "", `Writers: ${f.writers.map(writerName).join(" and ")}`));
    return item;
  }

  cause({ raw, t, from }, pass) {
    const own = Boolean(raw.write);
    const subject = raw.object && objectKey(raw.object) === objectKey(pass.object);
    const name = raw.object ? `${objectName(raw.object)} ${causeWords[raw.type] || raw.type}` : causeText(raw);
    const item = element("li", own ? "step own" : "step", element("div", "what", name + (subject ? ", itself" : "")));
    const who = element("div", "who");
    if (own) {
      const other = from?.pass && from.pass.key !== pass.key;
      const link = from?.pass && !from.pass.gone ? this.link(from.pass) : `#${raw.write.record}`;
      who.append(other ? `by the reconcile of ${objectName(from.pass.object)}, ` : "the echo of its own write in ", link);
    }
    const by = writersOf(raw);
    if (!own && by) who.append("by ", element("b", "", by));
    else if (!own && from?.pass && !from.pass.gone) who.append("requested by ", this.link(from.pass));
    if (who.childNodes.length > 0) who.append(" · ");
    who.append(`seen ${clock(t)}, waited ${span(pass.start - t)}`);
    item.append(who);
    if (raw.changes?.length) item.append(diff(raw));
    return item;
  }

  write({ raw, at, end }) {
    const classes = ["step", "write", raw.noChange && "same", raw.error && "refused"].filter(Boolean).join(" ");
    const what = `${raw.verb} ${raw.subresource ? `${raw.subresource} of ` : ""}${objectName(raw.object)}`;
    const item = element("li", classes, element("div", "what", what));
    const notes = [clock(at), `took ${span(end - at)}`];
    if (raw.noChange) notes.push("changed nothing");
    item.append(element("div", "who", notes.join(" · ")));
    if (raw.error) item.append(element("div", "error", `Refused: ${raw.error}`));
    return item;
  }

  link(pass) {
    const made = element("button", "link", `#${pass.id}`);
    made.type = "button";
    made.setAttribute("aria-label", `Open reconcile ${pass.id} of ${objectName(pass.object)}`);
    made.addEventListener("click", () => this.actions.open(pass, true));
    return made;
  }
}

function facts(pass) {
  const list = element("dl", "facts");
  const fact = (term, value, className) => list.append(element("div", "", element("dt", "", term), element("dd", className || "", value)));
  fact("Outcome", outcomeWords[pass.outcome] || pass.outcome, `outcome ${pass.outcome}`);
  fact("Waited", span(nanoseconds(pass.raw.waited)));
  fact("Took", span(pass.end - pass.start));
  fact("Events", String(pass.folded));
  fact("Writes", String(pass.written));
  return list;
}

/** diff shows each field as it was and as it is. */
function diff(raw) {
  const box = element("div", "diff");
  for (const change of raw.changes) {
    const field = element("div", "entry", element("div", "path", change.path));
    if (change.old) field.append(line("old", "before", change.old));
    if (change.new) field.append(line("new", "now", change.new));
    if (!change.old && !change.new) field.append(element("div", "path", "its values are not shown"));
    box.append(field);
  }
  const more = (raw.changed || 0) - raw.changes.length;
  if (more > 0) box.append(element("div", "more", `and ${plural(more, "more field")}`));
  return box;
}

function line(className, spoken, text) {
  return element("div", className, element("span", "hidden", `${spoken}: `), text);
}
