// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

import { drawChange, drawEvent, drawPass, drawWrite } from "/glyphs.js";
import { palette } from "/palette.js";
import { element } from "/rows.js";
import { recall, remember } from "/settings.js";

const keys = [
  [["j", "k"], "previous and next reconcile"], [["Enter"], "open it"], [["Esc"], "close the reconcile, then clear the selection, then the filters"], [["/"], "search reconciles"],
  [["o"], "find an object; Enter selects it, and Enter again the next one"], [["f"], "follow, or pause"], [["+", "−"], "zoom"], [["[", "]"], "move in time"], [["s"], "steps, or time"],
  [["l"], "loops only"], [["n"], "no-ops only"], [["1", "2", "3"], "tree, timeline, list"], [["4", "5"], "traffic, rights"], [["a", "b", "…"], "in the tree: go to the next object whose name starts with it"], [["T"], "totals per cause"], [["d"], "light, or dark"], [["?"], "this help"],
];

const pass = (more) => ({ outcome: "succeeded", ...more });

const signs = [
  ["a change by a user or another controller", (g, c) => drawChange(g, c, 22, 11, 5.5, false)],
  ["a change by one of these reconciles", (g, c) => drawChange(g, c, 22, 11, 5.5, true)],
  ["an event: updated, created, deleted, unchanged", (g, c) => ["updated", "created", "deleted", "resynced"].forEach((t, i) => drawEvent(g, c, 6 + i * 11, 11, 5, t))],
  ["a reconcile; its width is its duration", (g, c) => drawPass(g, c, 8, 11, 28, 13, pass())],
  ["a no-op: nothing to do, nothing written", (g, c) => drawPass(g, c, 8, 11, 28, 13, pass({ noop: true }))],
  ["a loop: another writer changes it back", (g, c) => drawPass(g, c, 9, 11, 26, 11, pass({ loop: true }))],
  ["failed", (g, c) => drawPass(g, c, 8, 11, 28, 13, pass({ outcome: "failed" }))],
  ["requeued", (g, c) => drawPass(g, c, 8, 11, 28, 13, pass({ outcome: "requeued" }))],
  ["the operator was restarted", (g, c) => {
    g.fillStyle = c.accent;
    for (let y = 0; y < 22; y += 8) g.fillRect(22, y, 1.5, 5);
  }],
  ["a write; one that changed nothing; one refused", (g, c) => [{}, { noChange: true }, { error: "x" }].forEach((w, i) => drawWrite(g, c, 8 + i * 14, 11, 5.5, w))],
];

/** openHelp shows the keys and what the signs mean. */
export function openHelp() {
  const dialog = document.getElementById("help");
  const title = element("h2", "", "Keys and signs");
  title.id = "help-title";
  const close = element("button", "quiet", "Close");
  close.type = "button";
  close.addEventListener("click", () => dialog.close());
  const keyList = element("dl", "");
  for (const [names, text] of keys) keyList.append(element("dt", "", ...names.map((n) => element("kbd", "", n))), element("dd", "", text));
  const signList = element("dl", "");
  const colours = palette();
  for (const [text, draw] of signs) {
    const canvas = element("canvas", "");
    canvas.width = 88;
    canvas.height = 44;
    canvas.setAttribute("aria-hidden", "true");
    const g = canvas.getContext("2d");
    g.scale(2, 2);
    draw(g, { ...colours, row: colours.panel });
    signList.append(element("dt", "", canvas), element("dd", "", text));
  }
  const box = element("input", "");
  box.type = "checkbox";
  box.id = "single-keys";
  box.checked = recall("keys") !== "off";
  box.addEventListener("change", () => remember("keys", box.checked ? "on" : "off"));
  const single = element("label", "switch", box, "Use single-key shortcuts");
  dialog.replaceChildren(element("header", "", title, close),
    element("p", "", "From top to bottom: an object changes, a watch reports it, a reconcile handles all events so far, and writes. A curve leads from a write to the change that it caused."),
    element("div", "columns", element("section", "", element("h3", "", "Keys"), keyList, single), element("section", "", element("h3", "", "Signs"), signList)));
  dialog.showModal();
}
