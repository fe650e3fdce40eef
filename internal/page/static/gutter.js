// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

import { head, laneY, rowHeight } from "/draw.js";

/** gutter is the width of the names beside the rows. */
export const gutter = 208;

const lanes = ["changes", "events", "reconciles", "writes"];

/** drawGutter names the rows and, where there is room, their lanes. */
export function drawGutter(g, { colours, rows, laneHeight, scroll, height, selected, several }) {
  g.fillStyle = colours.panel;
  g.fillRect(0, 0, gutter, height);
  g.fillStyle = colours.line;
  g.fillRect(gutter - 1, 0, 1, height);
  const tall = rowHeight(laneHeight);
  const first = Math.max(0, Math.floor(scroll / tall));
  const last = Math.min(rows.length, Math.ceil((scroll + height - head) / tall));
  g.textBaseline = "middle";
  for (let i = first; i < last; i++) {
    const row = rows[i];
    const top = head + i * tall - scroll;
    g.fillStyle = colours.line;
    g.fillRect(0, top + tall - 1, gutter, 1);
    if (selected?.key === row.key) {
      g.fillStyle = colours.accent;
      g.fillRect(0, top, 3, tall - 1);
    }
    const named = laneHeight >= 17;
    g.font = `600 13px ${colours.sans}`;
    g.fillStyle = colours.text;
    g.fillText(clip(row.object.name, named ? 16 : 24), 12, top + 16);
    g.font = `11px ${colours.sans}`;
    g.fillStyle = colours.muted;
    g.fillText(clip(row.object.kind || row.controller, named ? 18 : 26), 12, top + 32);
    const placed = several && row.object.namespace;
    if (placed) g.fillText(clipMiddle(row.object.namespace, named ? 18 : 22), 12, top + 47);
    // In a low row they stand beside the namespace, where the names of the lanes are in others.
    if (placed) badges(g, colours, row, named ? 12 : 146, top + (named ? 64 : 47));
    else badges(g, colours, row, 12, top + 50);
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

function badges(g, colours, row, x, y) {
  const texts = [];
  if (row.loops > 0) texts.push([`∞ ${row.loops}`, colours.loop]);
  if (row.noops > 0 && x === 12) texts.push([`${row.noops} no-op${row.noops === 1 ? "" : "s"}`, colours.muted]);
  for (const [text, colour] of texts) {
    g.fillStyle = colour;
    g.font = `600 11px ${colours.sans}`;
    g.fillText(text, x, y);
    x += text.length * 6.2 + 10;
  }
}

/** Names of namespaces differ at their end more often than at their beginning. */
const clipMiddle = (text, letters) => (text.length > letters ? `${text.slice(0, Math.ceil(letters / 2) - 1)}…${text.slice(-Math.floor(letters / 2))}` : text);

const clip = (text, letters) => (text.length > letters ? text.slice(0, letters - 1) + "…" : text);
