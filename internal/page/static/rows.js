// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

/**
 * Rows keeps as many elements in a scrolling box as can be seen of a list, however long that is. The one that the
 * keyboard is at is always among them, because assistive technology is told about it by its id.
 */
export class Rows {
  pool = [];
  items = [];
  active = -1;

  constructor(box, height, make, fill) {
    Object.assign(this, { box, height, make, fill });
    this.spacer = box.querySelector(".spacer");
    this.size = box.clientHeight;
    this.width = box.clientWidth;
    // Remembered, because asking would lay out the page each time.
    this.top = 0;
    box.addEventListener("scroll", () => this.scrollTo(box.scrollTop), { passive: true });
    new ResizeObserver(() => {
      this.size = box.clientHeight;
      this.width = box.clientWidth;
      this.draw();
    }).observe(box);
  }

  /** resize gives all rows another height. */
  resize(height) {
    this.height = height;
    for (const row of this.pool) row.at = -1;
    this.show(this.items);
  }

  show(items) {
    this.items = items;
    const total = `${items.length * this.height}px`;
    if (this.spacer.style.height !== total) this.spacer.style.height = total;
    this.draw();
  }

  draw() {
    const { top } = this;
    const first = Math.max(0, Math.floor(top / this.height) - 2);
    const last = Math.min(this.items.length, Math.ceil((top + this.size) / this.height) + 2);
    const wanted = last - first;
    let used = 0;
    const place = (index) => {
      let row = this.pool[used];
      if (!row) {
        row = this.make(used);
        row.classList.add("row");
        this.pool.push(row);
        this.box.append(row);
      }
      if (row.at !== index) {
        row.at = index;
        row.style.transform = `translateY(${index * this.height}px)`;
      }
      if (row.hidden) row.hidden = false;
      row.classList.toggle("active", index === this.active);
      this.fill(row, this.items[index], index);
      used++;
    };
    for (let i = 0; i < wanted; i++) place(first + i);
    if (this.active >= 0 && this.active < this.items.length && (this.active < first || this.active >= last)) place(this.active);
    for (let i = used; i < this.pool.length; i++) {
      if (!this.pool[i].hidden) this.pool[i].hidden = true;
      this.pool[i].at = -1;
    }
    const row = this.pool.find((r) => !r.hidden && r.at === this.active);
    if (row) this.box.setAttribute("aria-activedescendant", row.id);
    else this.box.removeAttribute("aria-activedescendant");
  }

  moveTo(index) {
    this.active = Math.max(0, Math.min(index, this.items.length - 1));
    const place = this.active * this.height;
    let to = this.top;
    if (place < to) to = place;
    else if (place + this.height > to + this.size) to = place + this.height - this.size;
    if (to !== this.top) this.box.scrollTop = to;
    this.scrollTo(to);
  }

  scrollTo(top) {
    this.top = top;
    this.draw();
  }

  get page() {
    return Math.max(1, Math.floor(this.size / this.height) - 1);
  }

  at(event) {
    return event.target.closest?.(".row")?.at ?? -1;
  }
}

/** element makes an element with a class and what is in it; text becomes text and never markup. */
export function element(tag, className, ...content) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...content.filter((c) => c !== null && c !== undefined && c !== false));
  return made;
}

/** set changes a text only if it is another: comparing costs less than laying out again. */
export function set(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function attribute(node, name, value) {
  if (value === null || value === undefined) {
    if (node.hasAttribute(name)) node.removeAttribute(name);
  } else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}
