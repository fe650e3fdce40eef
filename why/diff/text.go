// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import "unicode/utf8"

// Shorten cuts a text that is too long, between two characters.
func Shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return text[:cutOf(text, 0, limit)] + "…"
}

// shortenFrom shortens the text after the first bytes.
func shortenFrom(text []byte, from, limit int) []byte {
	if len(text)-from <= limit {
		return text
	}
	return append(text[:cutOf(text, from, limit)], "…"...)
}

// cutOf is where a text is cut.
func cutOf[T string | []byte](text T, from, limit int) int {
	cut := from + max(0, limit-len("…"))
	for cut > from && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return cut
}
