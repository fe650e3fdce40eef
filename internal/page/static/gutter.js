// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

import { head, laneY, rowHeight } from "/draw.js";
import { middle } from "/format.js";

/** gutter is the width of the names beside the rows. */
export let gutter = 208;

/** fitGutter leaves most of a narrow timeline to what happens. */
export function fitGutter(width) {
  gutter = width < 480 ? 112 : width < 760 ? 160 : width < 1600 ? 208 : 260;
}

const lanes = ["changes", "events", "reconciles", "writes"];

/** drawGutter names the rows and, where there is room, their lanes. */
export function drawGutter(g, { colours, rows, laneHeight, scroll, height, selected, several, depthOf, looping }) {
  g.fillStyle = colours.panel;
  g.fillRect(0, 0, gutter, height);
  g.fillStyle = colours.line;
  g.fillRect(gutter - 1, 0, 1, height);
  const tall = rowHeight(laneHeight);
  const first = Math.max(0, Math.floor(scroll / tall));
  const last = Math.min(rows.length, Math.ceil((scroll + height - head) / tall));
  g.textBaseline = "middle";
  // Names of lanes, where they are high enough and names of objects are not in their way.
  const named = laneHeight >= 17 && gutter > 180;
  const measure = (text) => g.measureText(text)?.width ?? 0;
  for (let i = first; i < last; i++) {
    const row = rows[i];
    const top = head + i * tall - scroll;
    g.fillStyle = colours.line;
    g.fillRect(0, top + tall - 1, gutter, 1);
    if (selected?.key === row.key) {
      g.fillStyle = colours.accent;
      g.fillRect(0, top, 3, tall - 1);
    }
    const left = (gutter < 200 ? 8 : 12) + Math.min(3, depthOf?.(row) || 0) * (gutter < 200 ? 5 : 10);
    const room = gutter - left - (named ? 68 : 8);
    g.font = `600 13px ${colours.sans}`;
    g.fillStyle = colours.text;
    // The lanes' names begin below it.
    g.fillText(middle(row.object.name, named && laneHeight < 30 ? room : gutter - left - 8, measure), left, top + (named && laneHeight >= 30 ? 13 : 16));
    g.font = `11px ${colours.sans}`;
    g.fillStyle = colours.muted;
    g.fillText(middle(row.object.kind || row.controller, room, measure), left, top + 32);
    const texts = badgesOf(row, colours, looping?.(row));
    const placed = several && row.object.namespace;
    // In a low row they stand beside the namespace, which then makes room for them.
    const beside = placed && !named;
    let x = left;
    if (placed) {
      const taken = beside && texts.length > 0 ? measure(texts[0][0]) + 12 : 0;
      const text = middle(row.object.namespace, room - taken, measure);
      g.fillText(text, left, top + 47);
      if (beside) x = left + measure(text) + 10;
    }
    drawBadges(g, colours, beside ? texts.slice(0, 1) : texts, x, top + (placed ? (beside ? 47 : 62) : 49), measure);
    if (!named) continue;
    g.font = `11px ${colours.sans}`;
    g.textAlign = "right";
    g.fillStyle = colours.faint;
    lanes.forEach((text, lane) => g.fillText(text, gutter - 10, laneY(top, lane, laneHeight)));
    g.textAlign = "left";
  }
  g.fillStyle = colours.panel;
  g.fillRect(0, 0, gutter - 1, head - 1);
  g.fillStyle = colours.line;
  g.fillRect(0, head - 1, gutter, 1);
}

/** badgesOf are what is said about a row, the most important first. They are never shortened. */
function badgesOf(row, colours, looping) {
  const texts = [];
  if (looping) texts.push(["∞ loop", colours.loop]);
  if (row.noops > 0) texts.push([`${row.noops} no-op${row.noops === 1 ? "" : "s"}`, colours.muted]);
  return texts;
}

function drawBadges(g, colours, texts, x, y, measure) {
  g.font = `600 11px ${colours.sans}`;
  for (const [text, colour] of texts) {
    g.fillStyle = colour;
    g.fillText(text, x, y);
    x += measure(text) + 10;
  }
}
