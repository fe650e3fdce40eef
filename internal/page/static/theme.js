// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Runs before anything is drawn, so that nobody who likes it dark is shown a white page first.
(() => {
  let chosen = "auto";
  try {
    chosen = localStorage.getItem("opdock-theme") || "auto";
  } catch {
    // Without storage the choice lasts as long as the page.
  }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
