// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package browser looks at the page in a real Chromium. It is a module of its own so that nothing else of Opdock depends
// on what it takes to drive a browser.
package browser
