// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

const names = [
  "panel", "text", "muted", "faint", "line", "line-strong", "accent", "chosen", "hover", "change", "event", "write", "echo", "succeeded",
  "requeued", "failed", "terminal", "panicked", "noop", "loop", "self", "row", "row-other", "edge", "edge-strong", "grid", "loop-soft",
];

/** palette reads the colours of the theme as a canvas needs them. */
export function palette() {
  const probe = document.createElement("span");
  probe.hidden = true;
  document.body.append(probe);
  const colours = {};
  for (const name of names) {
    probe.style.color = `var(--${name})`;
    colours[name.replace(/-(.)/, (_, c) => c.toUpperCase())] = getComputedStyle(probe).color;
  }
  colours.sans = getComputedStyle(document.body).fontFamily;
  probe.remove();
  return colours;
}
