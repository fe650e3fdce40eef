// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Runs before the first drawing, so a dark page does not flash white.
(() => {
  let chosen = "auto";
  try {
    chosen = localStorage.getItem("opdock-theme") || "auto";
  } catch {
    // Without storage the choice lasts as long as the page.
  }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
