// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lensview shows on the page what a lens sees: what goes over the wire, and which rights that takes. It stands between
// the two, so the page knows nothing of lenses and recordings, and a lens nothing of pages.
//
// A View follows the stream of a lens that is running. Open reads a recording, and returns a page about it.
package lensview
