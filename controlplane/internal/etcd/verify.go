// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.uber.org/zap"
)

// checkLimit is the size up to which a database is read through. Above that the
// check would take longer than the start.
const checkLimit = 256 << 20

// verify reads the data of an etcd that worked before, without changing a byte
// of it. etcd itself opens its files for writing, repairs what it can by cutting
// off the rest, panics on its own goroutines, and starts on a log that is missing its end. None
// of that may happen to a user's cluster.
func verify(dir string) error {
	applied, err := readDatabase(filepath.Join(dir, "member", "snap", "db"))
	if err != nil {
		return fmt.Errorf("the database: %w", err)
	}
	logged, err := readLog(filepath.Join(dir, "member", "wal"))
	if err != nil {
		return fmt.Errorf("the write-ahead log: %w", err)
	}
	if applied > logged {
		return fmt.Errorf("the write-ahead log ends at entry %d, but the database has entry %d: the end of the log is missing", logged, applied)
	}
	return nil
}

// readDatabase returns the number of the last log entry that is in the database.
func readDatabase(path string) (applied uint64, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	// A damaged page makes bbolt panic, or read past the end of the file.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s is damaged: %v", path, p)
		}
	}()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return 0, fmt.Errorf("opening %s: %w", path, err)
	}
	defer func() { _ = db.Close() }()
	err = db.View(func(tx *bbolt.Tx) error {
		if info.Size() < tx.Size() {
			return fmt.Errorf("%s has %d of %d bytes", path, info.Size(), tx.Size())
		}
		if err := walk(tx, info.Size()); err != nil {
			return fmt.Errorf("%s is damaged: %w", path, err)
		}
		if tx.Bucket(schema.Meta.Name()) == nil {
			return fmt.Errorf("%s is not an etcd database", path)
		}
		if index := tx.Bucket(schema.Meta.Name()).Get(schema.MetaConsistentIndexKeyName); len(index) == 8 {
			applied = binary.BigEndian.Uint64(index)
		}
		return nil
	})
	return applied, err
}

// walk visits every key, and so every page that holds one.
func walk(tx *bbolt.Tx, size int64) error {
	if size > checkLimit {
		return nil
	}
	return tx.ForEach(func(_ []byte, bucket *bbolt.Bucket) error {
		return bucket.ForEach(func(_, _ []byte) error { return nil })
	})
}

// readLog returns the number of the last entry in the log. A record that was
// cut off in the middle at the very end is what a crash leaves; it was never
// acknowledged, and etcd deals with it.
func readLog(dir string) (uint64, error) {
	if _, err := os.Stat(dir); err != nil {
		return 0, err
	}
	snapshots, err := wal.ValidSnapshotEntries(zap.NewNop(), dir)
	if err != nil {
		return 0, fmt.Errorf("reading %s: %w", dir, err)
	}
	var from walpb.Snapshot
	if len(snapshots) > 0 {
		from = snapshots[len(snapshots)-1]
	}
	log, err := wal.OpenForRead(zap.NewNop(), dir, from)
	if err != nil {
		return 0, fmt.Errorf("opening %s: %w", dir, err)
	}
	defer func() { _ = log.Close() }()
	_, _, entries, err := log.ReadAll()
	if err != nil {
		return 0, fmt.Errorf("reading %s: %w", dir, err)
	}
	if len(entries) == 0 {
		return from.Index, nil
	}
	return entries[len(entries)-1].Index, nil
}
