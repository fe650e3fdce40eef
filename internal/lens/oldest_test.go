// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// Verbs share a folder, and each removes only the recordings that it made itself and that have ended.
func TestTheOldestRecordingsAreRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	began := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	minute := func(count int) time.Time { return began.Add(time.Duration(count) * time.Minute) }
	record := func(path string, header Header) *Recording {
		t.Helper()
		r, err := Record(newStream(1<<20), path, header, 0)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	ended := func(path string, header Header) {
		t.Helper()
		if err := record(path, header).Close(); err != nil {
			t.Fatal(err)
		}
	}
	traced := Header{Traced: true}
	running := record(RecordingPath(dir, minute(0), ""), Header{})
	shortened := record(RecordingPath(dir, minute(1), ""), Header{})
	shortened.stream.add(Event{At: began, Lost: &Lost{Events: 1}})
	shortened.stream.add(Event{At: began, Lost: &Lost{Events: 2}})
	shortened.stream.close()
	<-shortened.done
	if err := shortened.shorten(); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		ended(RecordingPath(dir, minute(10+i), ""), Header{})
		ended(RecordingPath(dir, minute(20+i), ""), traced)
	}
	others := []string{filepath.Join(dir, "prove.jsonl"), filepath.Join(dir, "20260101T115900.000-record.jsonl")}
	for _, path := range others {
		ended(path, Header{})
	}
	if err := os.WriteFile(filepath.Join(dir, "20260101T115800.000.jsonl"), nil, 0o600); err != nil { // it has just begun
		t.Fatal(err)
	}
	if err := RemoveOldest(RecordingPath(dir, minute(30), ""), Header{}, 3); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"20260101T115800.000.jsonl", "20260101T115900.000-record.jsonl", "20260101T120000.000.jsonl", "20260101T120100.000.jsonl",
		"20260101T121200.000.jsonl", "20260101T121300.000.jsonl",
		"20260101T122000.000.jsonl", "20260101T122100.000.jsonl", "20260101T122200.000.jsonl", "20260101T122300.000.jsonl", "prove.jsonl",
	}
	expect := func() {
		t.Helper()
		var got []string
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			got = append(got, entry.Name())
		}
		if !slices.Equal(got, want) {
			t.Errorf("kept are\n%s\nand not\n%s", fmt.Sprintln(got), fmt.Sprintln(want))
		}
	}
	expect()
	for _, one := range []*Recording{running, shortened} {
		if err := one.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := RemoveOldest(RecordingPath(dir, minute(31), ""), traced, 2); err != nil {
		t.Fatal(err)
	}
	want = slices.Concat(want[:6], want[9:])
	expect()
	if err := RemoveOldest(RecordingPath(dir, minute(31), ""), Header{}, 3); err != nil {
		t.Fatal(err)
	}
	want = slices.Concat(want[:2], want[4:])
	expect()
}
