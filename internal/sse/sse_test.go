// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package sse

import (
	"errors"
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestWhatIsWrittenIsRead(t *testing.T) {
	answer := httptest.NewRecorder()
	w := NewWriter(answer, time.Second)
	if err := errors.Join(w.Comment("hello"), w.Event("lost", "", []byte(`{"n":1}`)), w.Event("record", "x-1", []byte("{}")), w.Flush()); err != nil {
		t.Fatal(err)
	}
	const want = ": hello\n\nevent: lost\ndata: {\"n\":1}\n\nevent: record\nid: x-1\ndata: {}\n\n"
	if got := answer.Body.String(); got != want || answer.Header().Get("Content-Type") != "text/event-stream" || !answer.Flushed {
		t.Errorf("got %q", got)
	}
	var seen []string
	err := Read(strings.NewReader(want), func(name, data string) error {
		seen = append(seen, name+" "+data)
		return nil
	})
	if !errors.Is(err, io.EOF) || !slices.Equal(seen, []string{`lost {"n":1}`, "record {}"}) {
		t.Errorf("read %q: %v", seen, err)
	}
	enough := errors.New("enough")
	if err := Read(strings.NewReader(want), func(string, string) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("reading goes on: %v", err)
	}
}
