// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func fill(s *Stream, count int) {
	for i := range count {
		s.add(Event{At: time.Now(), Request: &Request{ID: uint64(i + 1), Verb: "update", Status: 200, Resource: Resource{Resource: "configmaps", Namespace: "a", Name: "b"}}})
	}
}

func record(t *testing.T, s *Stream, most int64) *Recording {
	t.Helper()
	r, err := Record(s, filepath.Join(t.TempDir(), "recordings", "one.jsonl"), Header{Project: "shop"}, most)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func readBack(t *testing.T, data []byte) (found *Recorded, events []Event) {
	t.Helper()
	found, err := ReadRecording(bytes.NewReader(data), func(e *Event) error {
		events = append(events, *e)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found, events
}

func TestRecordingKeepsEverything(t *testing.T) {
	t.Parallel()
	s := newStream(defaultKept)
	r := record(t, s, 0)
	fill(s, 500)
	s.close()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(r.Path())
	if err != nil {
		t.Fatal(err)
	}
	found, events := readBack(t, data)
	if len(events) != 500 || found.Missing != 0 || found.Cut || found.Header.Project != "shop" || found.Totals.Uses[0].Count != 500 {
		t.Errorf("%d events, %+v", len(events), found)
	}
	if _, err := Record(s, r.Path(), Header{}, 0); !errors.Is(err, os.ErrExist) {
		t.Errorf("a recording can be overwritten: %v", err)
	}
}

func TestRecordingStaysWithinItsBound(t *testing.T) {
	t.Parallel()
	const most = 64 << 10
	s := newStream(defaultKept)
	r := record(t, s, most)
	fill(s, 5000)
	s.close()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(r.Path())
	if err != nil {
		t.Fatal(err)
	}
	found, events := readBack(t, data)
	if len(data) > most+4<<10 {
		t.Errorf("it has %d bytes", len(data))
	}
	if last := events[len(events)-1].Seq; last != 5000 || found.Missing+uint64(len(events)) != 5000 {
		t.Errorf("the last is %d, %d are there and %d missing", last, len(events), found.Missing)
	}
	if got := found.Totals.Uses[0].Count; got != 5000 {
		t.Errorf("the totals count %d", got)
	}
	// Cut off, it still counts what came before its older half was left out.
	found, cut := readBack(t, data[:len(data)*3/4])
	if !found.Cut || len(cut) >= len(events) || found.Totals.Uses[0].Count < 1000 {
		t.Errorf("cut off: %d events, %+v", len(cut), found.Totals.Uses[0])
	}
	// Without its end, it counts what is left once, although the totals before it count a part of that.
	found, _ = readBack(t, data[:bytes.LastIndexByte(data[:len(data)-1], '\n')+1])
	if got := found.Totals.Uses[0].Count; !found.Cut || got != 5000 {
		t.Errorf("without its end, the totals count %d", got)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(r.Path()), ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestRecordingThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	s := newStream(defaultKept)
	r := record(t, s, 0)
	// A file that is opened for reading refuses what a full disk would.
	broken, err := os.Open(r.Path())
	if err != nil {
		t.Fatal(err)
	}
	r.file.Close()
	r.file = broken
	fill(s, 10)
	s.close()
	err = r.Close()
	if err == nil || !strings.Contains(err.Error(), "10 events are missing") {
		t.Errorf("the error is %v", err)
	}
	data, err := os.ReadFile(r.Path())
	if err != nil {
		t.Fatal(err)
	}
	if found, events := readBack(t, data); len(events) != 0 || !found.Cut {
		t.Errorf("%d events, %+v", len(events), found)
	}
}

// A disk that is full at first leaves a recording that can be read.
func TestHeaderThatCannotBeWrittenAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "one.jsonl")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	full, err := os.Open(path) // it refuses what a full disk would
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	now := time.Now()
	r := &Recording{
		path: path, header: []byte(`{"opdock":"recording","version":1,"project":"shop"}` + "\n"), most: DefaultRecordingSize,
		file: full, now: func() time.Time { return now },
	}
	if r.append(nil) || r.problem == nil {
		t.Fatal("the header was written")
	}
	if r.file, err = os.OpenFile(path, os.O_WRONLY, 0); err != nil {
		t.Fatal(err)
	}
	defer r.file.Close()
	now = now.Add(retryAfter)
	if !r.append([]byte(`{"seq":1,"process":{"started":true}}`+"\n")) || r.problem != nil {
		t.Fatalf("nothing was written: %v", r.problem)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if found, events := readBack(t, data); len(events) != 1 || found.Header.Project != "shop" {
		t.Errorf("%d events, %+v", len(events), found)
	}
}

func TestFilesThatAreNoRecordings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                   "it is empty",
		"hello\n":                            "its first line is not the header of a recording",
		"{}\n":                               "its first line is not the header of a recording",
		`{"opdock":"recording","version":9}`: "use a newer opdock",
		`{"opdock":"recording","version":1}` + "\nnonsense\n" + `{"seq":1}`:                                            "line 2 of the recording is damaged",
		`{"opdock":"recording","version":1}` + "\n" + `{"seq":1}` + "\n" + `{"opdock":"recording","version":1}` + "\n": "line 3 of the recording begins another recording",
		`{"opdock":"recording","version":1}` + "\n" + `{"seq":2}` + "\n" + `{"seq":1}` + "\n" + `{"seq":3}`:            "line 3 of the recording is damaged",
	} {
		if _, err := ReadRecording(strings.NewReader(text), func(*Event) error { return nil }); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v", text, err)
		}
	}
}
