// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"bytes"
	"compress/gzip"
	"testing"
)

func TestInflatedAnswersAreBounded(t *testing.T) {
	t.Parallel()
	for size, fits := range map[int]bool{maxAnswer: true, maxAnswer + 1: false} {
		var zipped bytes.Buffer
		zip := gzip.NewWriter(&zipped)
		if _, err := zip.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		if err := zip.Close(); err != nil {
			t.Fatal(err)
		}
		plain, err := inflate(zipped.Bytes(), "gzip")
		if fits && (err != nil || len(plain) != size) || !fits && (err == nil || err.Error() != tooLarge) {
			t.Errorf("%d bytes became %d, %v", size, len(plain), err)
		}
	}
}
