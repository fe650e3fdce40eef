// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/schema"
)

// Database returns the path of the database in a data folder.
func Database(dir string) string { return filepath.Join(dir, "member", "snap", "db") }

// CreateDataDir makes a data folder for a database that is about to be copied to Database(dir).
func CreateDataDir(dir string) error {
	return os.MkdirAll(filepath.Dir(Database(dir)), 0o700)
}

// Adopt makes the copied database in a data folder one that a new etcd starts
// with. It removes what belongs to the etcd it came from: the members, and the
// number of the last log entry, because the new one has a log of its own that
// begins with entry 1. Keys and all their revisions stay.
func Adopt(dir string) error {
	return onDatabase(Database(dir), false, func(tx *bbolt.Tx) error {
		for _, bucket := range [][]byte{schema.Members.Name(), schema.MembersRemoved.Name(), schema.Cluster.Name(), schema.Alarm.Name()} {
			if tx.Bucket(bucket) == nil {
				continue
			}
			if err := tx.DeleteBucket(bucket); err != nil {
				return fmt.Errorf("clearing %s: %w", bucket, err)
			}
			if _, err := tx.CreateBucket(bucket); err != nil {
				return fmt.Errorf("clearing %s: %w", bucket, err)
			}
		}
		meta := tx.Bucket(schema.Meta.Name())
		for _, key := range [][]byte{schema.MetaConsistentIndexKeyName, schema.MetaTermKeyName, schema.MetaConfStateName} {
			if err := meta.Delete(key); err != nil {
				return fmt.Errorf("clearing %s: %w", key, err)
			}
		}
		return nil
	})
}

// Revision returns the last revision in a database file.
func Revision(path string) (revision int64, err error) {
	err = onDatabase(path, true, func(tx *bbolt.Tx) error {
		// A key is the revision, a separator, and the position in its transaction.
		key, _ := tx.Bucket(schema.Key.Name()).Cursor().Last()
		if len(key) >= 8 {
			revision = int64(binary.BigEndian.Uint64(key)) //nolint:gosec // etcd counts with int64
		}
		return nil
	})
	return revision, err
}

// onDatabase runs a transaction on an etcd database that no other process uses.
func onDatabase(path string, readOnly bool, run func(*bbolt.Tx) error) (err error) {
	// A damaged page makes bbolt panic, or read past the end of the file.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s is damaged: %v", path, p)
		}
	}()
	// etcd does not store the list of free pages either, nor does a copy need to survive a power failure
	// before it has been put in place.
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{
		ReadOnly: readOnly, Timeout: time.Second, NoSync: true, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType,
	})
	if err != nil {
		return fmt.Errorf("opening %s: %w", path, err)
	}
	checked := func(tx *bbolt.Tx) error {
		for _, bucket := range [][]byte{schema.Meta.Name(), schema.Key.Name()} {
			if tx.Bucket(bucket) == nil {
				return fmt.Errorf("%s is not an etcd database", path)
			}
		}
		return run(tx)
	}
	if readOnly {
		err = db.View(checked)
	} else {
		err = db.Update(checked)
	}
	return errors.Join(err, db.Close())
}
