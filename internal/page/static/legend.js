// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

import { drawChange, drawEvent, drawPass, drawWrite } from "/glyphs.js";
import { palette } from "/palette.js";
import { element } from "/rows.js";

const signs = [
  ["change", (g, c) => drawChange(g, c, 11, 8, 4.5, false)],
  ["echo of a write", (g, c) => drawChange(g, c, 11, 8, 4.5, true)],
  ["event", (g, c) => drawEvent(g, c, 11, 8, 5, "updated")],
  ["reconcile", (g, c) => drawPass(g, c, 2, 8, 18, 11, { outcome: "succeeded" })],
  ["no-op", (g, c) => drawPass(g, c, 2, 8, 18, 11, { outcome: "succeeded", noop: true })],
  ["loop", (g, c) => drawPass(g, c, 5, 8, 12, 7, { outcome: "succeeded", loop: true })],
  ["failed", (g, c) => drawPass(g, c, 2, 8, 18, 12, { outcome: "failed" })],
  ["write", (g, c) => drawWrite(g, c, 11, 8, 5, {})],
];

/** showLegend says in one line what the most frequent signs mean, in the colours of the theme. */
export function showLegend() {
  const colours = palette();
  document.getElementById("legend").replaceChildren(...signs.map(([text, draw]) => {
    const canvas = element("canvas", "");
    canvas.width = 44;
    canvas.height = 32;
    canvas.setAttribute("aria-hidden", "true");
    const g = canvas.getContext("2d");
    g.scale(2, 2);
    draw(g, { ...colours, row: colours.panel });
    return element("span", "", canvas, text);
  }));
}
