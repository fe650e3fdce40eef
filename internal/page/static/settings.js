// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Settings of the user. Without storage, they last as long as the page.
const chosen = new Map();

export function recall(name) {
  if (chosen.has(name)) return chosen.get(name);
  try {
    return localStorage.getItem(`opdock-${name}`);
  } catch {
    return null;
  }
}

export function remember(name, value) {
  chosen.set(name, value);
  try {
    localStorage.setItem(`opdock-${name}`, value);
  } catch {
    // It is in chosen.
  }
}
