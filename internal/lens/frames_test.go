// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
)

func TestSplitter(t *testing.T) {
	length := func(text string) string {
		var prefix [4]byte
		binary.BigEndian.PutUint32(prefix[:], uint32(len(text)))
		return string(prefix[:]) + text
	}
	for name, one := range map[string]struct {
		as   encoding
		body string
		want []string
	}{
		"lines":             {encodedJSON, "{\"a\":1}\n{\"b\":2}\n", []string{`{"a":1}`, `{"b":2}`}},
		"without lines":     {encodedJSON, `{"a":1}{"b":2}`, []string{`{"a":1}`, `{"b":2}`}},
		"over many lines":   {encodedJSON, "{\n \"a\": {\"x\": [1]}\n}\n{}", []string{"{\n \"a\": {\"x\": [1]}\n}", "{}"}},
		"braces in strings": {encodedJSON, `{"a":"}{\"}"}` + "\n" + `{"b":"\\"}`, []string{`{"a":"}{\"}"}`, `{"b":"\\"}`}},
		"not complete":      {encodedJSON, `{"a":1}{"b":`, []string{`{"a":1}`}},
		"protobuf":          {encodedProtobuf, length("one") + length("") + length("three") + "\x00\x00", []string{"one", "", "three"}},
	} {
		for _, size := range []int{1, 3, 7, 1000} {
			s := &splitter{as: one.as}
			var got []string
			for chunk := range slices.Chunk([]byte(one.body), size) {
				if err := s.add(chunk, func(_, event []byte) { got = append(got, strings.TrimSpace(string(event))) }); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(got, one.want) {
				t.Errorf("%s in chunks of %d: %q instead of %q", name, size, got, one.want)
			}
		}
	}
}

func TestSplitterBoundsWhatItKeeps(t *testing.T) {
	s := &splitter{as: encodedJSON}
	err := s.add([]byte(`{"a":"`+strings.Repeat("x", maxFrame)), func(_, _ []byte) { t.Error("there is no event") })
	if err == nil || len(s.rest) > 0 {
		t.Errorf("%d bytes are kept, and the error is %v", len(s.rest), err)
	}
}
