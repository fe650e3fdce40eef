// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opdock/opdock/controlplane/internal/fault"
)

const running = "v1.36.3"

// sample writes a snapshot and returns its path and the data in it.
func sample(t *testing.T, header Header) (path string, data []byte) {
	t.Helper()
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		data = append(data, byte(random.IntN(40)))
	}
	database := filepath.Join(dir, "db")
	if err := os.WriteFile(database, data, 0o600); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, "base.snapshot")
	if err := Write(path, header, database); err != nil {
		t.Fatal(err)
	}
	return path, data
}

func TestRoundTrip(t *testing.T) {
	header := Header{
		Kubernetes: running, Emulated: "1.34", Cluster: "dock", Revision: 4711, Objects: 12,
		Created: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC),
	}
	path, data := sample(t, header)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 || info.Size() >= int64(len(data)) {
		t.Errorf("the file: %v, %v", info, err)
	}
	file, err := Open(path, running)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	got := file.Header
	if got.Size != int64(len(data)) || got.Kubernetes != running || got.Emulated != "1.34" || got.Revision != 4711 || !got.Created.Equal(header.Created) {
		t.Errorf("header is %+v", got)
	}
	to := filepath.Join(t.TempDir(), "db")
	if err := file.Extract(to); err != nil {
		t.Fatal(err)
	}
	if extracted, err := os.ReadFile(to); err != nil || !bytes.Equal(extracted, data) {
		t.Errorf("%d of %d bytes are back, or others: %v", len(extracted), len(data), err)
	}
}

func TestNoTraceOfAFailedWrite(t *testing.T) {
	dir := t.TempDir()
	if err := Write(filepath.Join(dir, "base.snapshot"), Header{}, filepath.Join(dir, "missing")); err == nil {
		t.Error("a snapshot of nothing was written")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestBadFilesAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		header Header
		damage func(content []byte) []byte
		reason fault.Reason
		says   string
	}{
		"empty":               {damage: func([]byte) []byte { return nil }, reason: fault.BadSnapshot, says: "not a snapshot"},
		"another file":        {damage: func([]byte) []byte { return []byte("apiVersion: v1\nkind: List\n") }, reason: fault.BadSnapshot, says: "not a snapshot"},
		"cut in the name":     {damage: func(c []byte) []byte { return c[:16] }, reason: fault.BadSnapshot, says: "cut off or damaged"},
		"cut in the header":   {damage: func(c []byte) []byte { return c[:40] }, reason: fault.BadSnapshot, says: "cut off or damaged"},
		"cut in the data":     {damage: func(c []byte) []byte { return c[:len(c)/2] }, reason: fault.BadSnapshot, says: "cut off or damaged"},
		"cut in the checksum": {damage: func(c []byte) []byte { return c[:len(c)-1] }, reason: fault.BadSnapshot, says: "cut off or damaged"},
		"longer":              {damage: func(c []byte) []byte { return append(c, "more"...) }, reason: fault.BadSnapshot, says: "cut off or damaged"},
		"a bit of the data":   {damage: func(c []byte) []byte { c[len(c)/2] ^= 1; return c }, reason: fault.BadSnapshot, says: "cut off or damaged"},
		"a digit of the header": {
			damage: func(c []byte) []byte {
				return bytes.Replace(c, []byte(`"revision":4711`), []byte(`"revision":4712`), 1)
			},
			reason: fault.BadSnapshot, says: "checksum",
		},
		"newer format": {
			damage: func(c []byte) []byte { return bytes.Replace(c, []byte(magic+"1"), []byte(magic+"2"), 1) },
			reason: fault.NewerState, says: "format 2",
		},
		"newer Kubernetes": {header: Header{Kubernetes: "v1.37.0"}, reason: fault.NewerState, says: "v1.37.0"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.header.Kubernetes == "" {
				test.header.Kubernetes = running
			}
			test.header.Revision = 4711
			path, _ := sample(t, test.header)
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if test.damage != nil {
				if err := os.WriteFile(path, test.damage(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			file, err := Open(path, running)
			if err == nil {
				defer file.Close()
				err = file.Extract(filepath.Join(t.TempDir(), "db"))
			}
			var shown *fault.Error
			if !errors.As(err, &shown) || shown.Reason != test.reason || shown.Hint == "" || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want reason %s with %q", err, test.reason, test.says)
			}
		})
	}
	var shown *fault.Error
	if _, err := Open(filepath.Join(t.TempDir(), "none"), running); !errors.As(err, &shown) || shown.Reason != fault.BadSnapshot {
		t.Errorf("a file that is not there: %v", err)
	}
}
