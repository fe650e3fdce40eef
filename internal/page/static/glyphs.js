// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// The signs of the timeline. Each differs from the others in shape, not in colour alone.

/** change is a disc for a change by another writer, and a ring for the echo of a reconcile's own write. */
export function drawChange(g, colours, x, y, r, own, loose) {
  g.beginPath();
  g.arc(x, y, r, 0, 7);
  if (own) {
    g.fillStyle = colours.row;
    g.fill();
    g.lineWidth = 2;
    g.strokeStyle = colours.echo;
    g.stroke();
  } else {
    g.globalAlpha *= loose ? 0.45 : 1;
    g.fillStyle = colours.change;
    g.fill();
    g.globalAlpha = loose ? g.globalAlpha / 0.45 : g.globalAlpha;
  }
}

/** event is a short stroke for an update, with arms for what else a watch can say. */
export function drawEvent(g, colours, x, y, r, type) {
  g.fillStyle = g.strokeStyle = colours.event;
  switch (type) {
    case "created":
      g.fillRect(x - 1, y - r, 2, 2 * r);
      g.fillRect(x - r, y - 1, 2 * r, 2);
      break;
    case "deleted":
      g.lineWidth = 2;
      g.beginPath();
      g.moveTo(x - r + 1, y - r + 1);
      g.lineTo(x + r - 1, y + r - 1);
      g.moveTo(x + r - 1, y - r + 1);
      g.lineTo(x - r + 1, y + r - 1);
      g.stroke();
      break;
    case "updated":
      g.fillRect(x - 1.5, y - r, 3, 2 * r);
      break;
    default: // nothing has changed: hollow
      g.lineWidth = 1.5;
      g.strokeRect(x - 2, y - r + 1, 4, 2 * r - 2);
  }
}

/** write is a diamond; hollow if nothing changed by it, crossed out if it was refused. */
export function drawWrite(g, colours, x, y, r, write) {
  g.beginPath();
  g.moveTo(x, y - r);
  g.lineTo(x + r, y);
  g.lineTo(x, y + r);
  g.lineTo(x - r, y);
  g.closePath();
  if (write.error) {
    g.lineWidth = 2;
    g.fillStyle = colours.row;
    g.fill();
    g.strokeStyle = colours.failed;
    g.stroke();
    g.beginPath();
    g.moveTo(x - r, y + r);
    g.lineTo(x + r, y - r);
    g.stroke();
  } else if (write.noChange) {
    g.lineWidth = 1.5;
    g.fillStyle = colours.row;
    g.fill();
    g.strokeStyle = colours.write;
    g.stroke();
  } else {
    g.fillStyle = colours.write;
    g.fill();
  }
}

const dashes = [3, 2.5];
const none = [];

/** pass is a bar: hollow and dashed for a no-op, within a frame for a loop, with edges and a sign for what failed. */
export function drawPass(g, colours, x, y, width, height, pass) {
  const failed = pass.outcome === "failed" || pass.outcome === "terminal" || pass.outcome === "panicked";
  const top = y - height / 2;
  if (pass.loop) {
    g.lineWidth = 1.5;
    g.strokeStyle = colours.loop;
    g.fillStyle = colours.loopSoft;
    g.beginPath();
    g.roundRect(x - 3.5, top - 3.5, width + 7, height + 7, 5);
    g.fill();
    g.stroke();
  }
  g.beginPath();
  if (failed) g.rect(x, top, width, height);
  else g.roundRect(x, top, width, height, Math.min(4, height / 2, width / 2));
  if (pass.noop && !failed) {
    g.fillStyle = colours.row;
    g.fill();
    g.setLineDash(dashes);
    g.lineWidth = 1.5;
    g.strokeStyle = colours.noop;
    g.stroke();
    g.setLineDash(none);
    return;
  }
  g.fillStyle = pass.loop ? colours.loop : colours[pass.outcome] || colours.succeeded;
  g.fill();
  if (!failed && pass.outcome !== "requeued") return;
  const cx = x + width / 2;
  const arm = Math.min(3, width / 2 - 1, height / 2 - 2);
  if (arm < 2) return;
  g.strokeStyle = colours.row;
  g.lineWidth = 1.6;
  g.beginPath();
  if (failed) {
    g.moveTo(cx - arm, y - arm);
    g.lineTo(cx + arm, y + arm);
    g.moveTo(cx + arm, y - arm);
    g.lineTo(cx - arm, y + arm);
  } else {
    g.moveTo(cx - arm + 1, y - arm);
    g.lineTo(cx + arm - 1, y);
    g.lineTo(cx - arm + 1, y + arm);
  }
  g.stroke();
}
