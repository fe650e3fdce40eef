// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/testenv"
)

// garbledFrom writes over a file from a position on.
func garbledFrom(position int64) func(path string) error {
	return func(path string) error {
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			return err
		}
		noise := make([]byte, min(info.Size()-position, 1<<20))
		for i := range noise {
			noise[i] = byte(i*7 + 13)
		}
		_, err = file.WriteAt(noise, position)
		return err
	}
}

func cutTo(size int64) func(path string) error {
	return func(path string) error { return os.Truncate(path, size) }
}

const database, writeAheadLog = "etcd/member/snap/db", "etcd/member/wal/*.wal"

// TestCorruptState damages state in many ways. Each time the start has to say so and leave everything as it is,
// so that it can be restored or examined.
func TestCorruptState(t *testing.T) {
	testenv.ControlPlane(t)
	t.Parallel()
	for _, test := range []struct {
		name   string
		file   string
		damage func(path string) error
	}{
		{"db-garbled", database, garbledFrom(0)},
		{"db-head-kept", database, garbledFrom(16 << 10)},
		{"db-cut", database, cutTo(5000)},
		{"wal-garbled", writeAheadLog, garbledFrom(0)},
		{"wal-head-kept", writeAheadLog, garbledFrom(2 << 10)},
		{"wal-cut", writeAheadLog, cutTo(1000)},
		{"wal-empty", writeAheadLog, cutTo(0)},
		{"wal-missing", writeAheadLog, os.Remove},
		{"etcd-missing", "etcd", os.RemoveAll},
		{"key-garbled", "pki/ca.key", garbledFrom(0)},
		{"key-missing", "pki/ca.key", os.Remove},
		{"cert-garbled", "pki/ca.crt", garbledFrom(100)},
		{"sa-missing", "pki/sa.key", os.Remove},
		{"pki-missing", "pki", os.RemoveAll},
		{"state-garbled", "state.json", garbledFrom(0)},
		{"state-empty", "state.json", cutTo(0)},
		{"state-missing", "state.json", os.Remove},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			name, dir := stopped(t)
			files := must(filepath.Glob(filepath.Join(dir, test.file)))(t)
			if len(files) == 0 {
				t.Fatalf("there is no %s", test.file)
			}
			try(t, test.damage(files[0]))
			unchanged(t, dir, func() {
				refuses(t, cluster.Options{Name: name}, cluster.ReasonCorruptState, dir)
			})
		})
	}
}

// TestLostDatabase is about damage that may be repaired: the write-ahead log of a small cluster has everything
// that was in the database. To refuse it is fine as well, to lose something is not.
func TestLostDatabase(t *testing.T) {
	testenv.ControlPlane(t)
	t.Parallel()
	for name, damage := range map[string]func(path string) error{
		"missing": os.Remove,
		"empty":   cutTo(0),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			name, dir := stopped(t)
			try(t, damage(filepath.Join(dir, database)))
			before := fingerprint(t, dir)
			c, err := cluster.Start(within(t), cluster.Options{Name: name})
			var refusal *cluster.StartError
			switch {
			case err == nil:
				keeps(t, c)
				try(t, c.Stop())
				again := start(t, cluster.Options{Name: name})
				keeps(t, again)
			case !errors.As(err, &refusal) || refusal.Reason != cluster.ReasonCorruptState:
				t.Errorf("it says %v", err)
			case !maps.Equal(before, fingerprint(t, dir)):
				t.Error("refused, and yet changed")
			}
		})
	}
}
