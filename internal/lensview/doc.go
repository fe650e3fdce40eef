// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lensview shows the events of a lens on the page: traffic, and the rights that it needs. It is an
// adapter: the page does not depend on lenses and recordings, and a lens does not depend on pages.
//
// A View follows the stream of a lens that is running. Open reads a recording, and returns a page about it.
package lensview
