// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Texts and numbers for records.

/** instant is a time as milliseconds with fractions: a Date would lose the microseconds that order what happens. */
export function instant(text) {
  const whole = Date.parse(text);
  const dot = text.indexOf(".");
  if (dot < 0) return whole;
  let fraction = "";
  for (let i = dot + 4; i < text.length && text.charCodeAt(i) >= 48 && text.charCodeAt(i) <= 57; i++) fraction += text[i];
  return fraction === "" ? whole : whole + Number("0." + fraction);
}

const pad = (n, width = 2) => String(n).padStart(width, "0");

export function clock(ms, precise = true) {
  const d = new Date(ms);
  const text = `${pad(d.getHours())}:${pad(d.getMinutes())}:${pad(d.getSeconds())}`;
  return precise ? `${text}.${pad(d.getMilliseconds(), 3)}` : text;
}

/** span formats a number of milliseconds for people. */
export function span(ms) {
  if (ms < 0.095) return `${Math.round(ms * 1000)} µs`;
  if (ms < 10) return `${trim(ms.toFixed(1))} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${trim((ms / 1000).toFixed(1))} s`;
  if (ms < 120_000) return `${Math.round(ms / 1000)} s`;
  if (ms < 7_200_000) return `${Math.round(ms / 60_000)} min`;
  if (ms < 172_800_000) return `${Math.round(ms / 3_600_000)} h`;
  return `${Math.round(ms / 86_400_000)} d`;
}

const trim = (text) => text.replace(/\.0$/, "");

export const nanoseconds = (ns) => (ns || 0) / 1e6;

export const number = (n) => n.toLocaleString("en-US");

export function plural(n, noun) {
  return `${number(n)} ${noun}${n === 1 ? "" : "s"}`;
}

export function objectName(o) {
  return o ? `${o.kind ? o.kind + " " : ""}${o.name}` : "";
}

/** placedName is a unique name, with the namespace if there are several. */
export function placedName(o, several) {
  return objectName(o) + (several && o.namespace ? ` in ${o.namespace}` : "");
}

/** objectKey is the same for an object wherever it is named; not every record knows its UID. */
export function objectKey(o) {
  return `${o.kind || ""}/${o.group || ""}/${o.namespace || ""}/${o.name}`;
}

export const causeWords = {
  listed: "existed at the start", created: "was created", updated: "changed", deleted: "was deleted",
  resynced: "was resynced, unchanged", generic: "came from another source", retried: "Retry after an error",
  timer: "Requeue timer", unknown: "Unknown: no watch event came before it (a resync, a timer or another source)",
};

export const outcomeWords = {
  succeeded: "Succeeded", requeued: "Requeued", failed: "Failed", terminal: "Failed for good", panicked: "Panicked",
};

export const findingWords = { loop: "Loop", "self-inflicted": "Self-inflicted", noop: "No-op" };

export function writerName(w) {
  return w.manager + (w.subresource ? ` (${w.subresource})` : "");
}

export function writers(list) {
  return (list || []).map(writerName).join(", ");
}

/** The field managers of Kubernetes itself. */
const machines = new Set(["kube-controller-manager", "kube-scheduler", "kube-apiserver", "kubelet", "kwok", "kwok-controller", "k3s", "cloud-controller-manager"]);

/** isUser reports whether a user made a change, and not a controller. */
export function isUser(raw, controllers) {
  if (raw.write || !["created", "updated", "deleted"].includes(raw.type)) return false;
  return (raw.by || []).some((w) => w.subresource !== "status" && !machines.has(w.manager) && !controllers.has(w.manager));
}

/** writersOf names the writers of a change. It is empty if neither managed fields nor a reconcile's write identify them. */
export function writersOf(cause) {
  const known = writers(cause.by);
  return known || cause.type !== "updated" || !cause.changes?.length || cause.write ? known : "an unknown writer";
}

/** middle shortens a text in its middle until it fits: names differ at their end as often as at their beginning. */
export function middle(text, room, measure) {
  if (measure(text) <= room) return text;
  let low = 2;
  let high = text.length - 1;
  while (low < high) {
    const letters = (low + high + 1) >> 1;
    if (measure(withoutMiddle(text, letters)) <= room) low = letters;
    else high = letters - 1;
  }
  return withoutMiddle(text, low);
}

/** withoutMiddle leaves so many letters of a text. */
export const withoutMiddle = (text, letters) => `${text.slice(0, Math.ceil(letters / 2))}…${text.slice(text.length - Math.floor(letters / 2))}`;

const clip = (text, length) => (text.length > length ? text.slice(0, length - 1) + "…" : text);

export function changeText(change) {
  const path = change.path.replace(/^(spec|status|metadata)\./, (m) => m);
  if (!change.old) return `${path} = ${clip(change.new || "", 24)}`;
  if (!change.new) return `${path} removed`;
  return `${path} ${clip(change.old, 18)} → ${clip(change.new, 18)}`;
}

/** causeText describes an event in one line. */
export function causeText(cause, subject) {
  if (!cause.object) return causeWords[cause.type] || cause.type;
  const name = subject && objectKey(subject) === objectKey(cause.object) ? "it" : objectName(cause.object);
  const by = writersOf(cause);
  if (cause.type === "updated" && cause.changes?.length) {
    const more = (cause.changed || cause.changes.length) - 1;
    const what = changeText(cause.changes[0]) + (more > 0 ? ` and ${more} more` : "");
    const of = name === "it" ? "" : ` of ${name}`;
    return by ? `${by}: ${what}${of}` : what + of;
  }
  return `${name} ${causeWords[cause.type] || cause.type}${by && cause.type !== "resynced" ? ` by ${by}` : ""}`;
}

/** because describes in one line why a reconcile happened. The most useful cause comes first. */
export function because(pass) {
  if (pass.causes.length === 0) return "Unknown cause";
  const telling = pass.causes.find((c) => c.user) || pass.causes.find((c) => c.raw.type === "updated" && !c.raw.write) || pass.causes.find((c) => c.raw.changes?.length) || pass.causes[0];
  const more = pass.folded - 1;
  return causeText(telling.raw, pass.object) + (more > 0 ? `, and ${plural(more, "more event")}` : "");
}

export function did(pass) {
  if (pass.written === 0) return pass.error ? pass.error : "wrote nothing";
  const first = pass.writes[0]?.raw;
  if (!first) return plural(pass.written, "write");
  const what = `${first.verb} ${first.subresource ? first.subresource + " of " : ""}${objectName(first.object)}`;
  return pass.written > 1 ? `${what} and ${pass.written - 1} more` : what;
}
