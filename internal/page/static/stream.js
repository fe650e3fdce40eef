// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

/** How many messages wait at most to be looked at. A page that cannot keep up leaves out the oldest and says so. */
const maxWaiting = 20_000;

/**
 * Stream follows server-sent events. What arrives only waits in a line; the page takes it out once a frame, so that a
 * flood of messages is one drawing and not one each.
 */
export class Stream {
  waiting = [];
  lost = 0;
  state = "connecting";
  attempts = 0;
  silentSince = performance.now();

  constructor(url, names, wake) {
    Object.assign(this, { url, names, wake });
    document.addEventListener("visibilitychange", () => (document.hidden ? this.pauseSoon() : this.resume()));
  }

  open() {
    this.close();
    const source = new EventSource(this.url(this.position));
    this.source = source;
    source.onopen = () => {
      this.attempts = 0;
      this.become("live");
    };
    source.onerror = () => {
      if (this.source !== source) return;
      // The browser would ask again by itself, but not after every kind of error, and not with what we know by now.
      source.close();
      this.source = null;
      if (this.state !== "crowded") this.become("lost");
      this.findOut();
      this.attempts++;
      this.retry = setTimeout(() => this.open(), Math.min(5000, 250 * 2 ** Math.min(this.attempts, 5)));
    };
    for (const name of this.names) source.addEventListener(name, (event) => this.take(name, event));
  }

  /** findOut asks what the browser does not tell: whether the server is gone, or has no room for another page. */
  async findOut() {
    let full = false;
    try {
      full = (await fetch(this.url(this.position), { method: "HEAD" })).status === 503;
    } catch {
      // It is gone.
    }
    if (!this.source && this.state !== "paused") this.become(full ? "crowded" : "lost");
  }

  take(name, event) {
    this.waiting.push(name, event.data);
    if (event.lastEventId) this.position = event.lastEventId;
    if (this.waiting.length > 2 * maxWaiting) this.lost += this.waiting.splice(0, this.waiting.length - 2 * maxWaiting).length / 2;
    this.wake();
  }

  close() {
    clearTimeout(this.retry);
    clearTimeout(this.pausing);
    this.source?.close();
    this.source = null;
  }

  /** A hidden page disconnects after a while to make room for others. It catches up when it is visible again. */
  pauseSoon() {
    clearTimeout(this.pausing);
    this.pausing = setTimeout(() => {
      this.close();
      this.become("paused");
    }, 60_000);
  }

  resume() {
    clearTimeout(this.pausing);
    if (["paused", "lost", "crowded"].includes(this.state)) this.open();
  }

  become(state) {
    if (state !== this.state) {
      this.state = state;
      this.wake();
    }
  }

  /** drain hands out what has arrived until the time is up, and returns whether there is more. */
  drain(handle, until) {
    let at = 0;
    while (at < this.waiting.length) {
      handle(this.waiting[at], this.waiting[at + 1]);
      at += 2;
      if (performance.now() > until) break;
    }
    if (at > 0) this.waiting.splice(0, at);
    return this.waiting.length > 0;
  }
}
