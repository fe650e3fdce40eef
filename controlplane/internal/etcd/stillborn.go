// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.uber.org/zap"
)

// discardStillborn removes the data of an etcd that was killed before its log had its first committed entry, the one
// that makes the member a voter. etcd takes such a log for that of a member it knows, which then never elects itself:
// the start would not end. Nothing was ever stored in it. All other data stays, whatever state it is in.
func discardStillborn(dir string) error {
	member := filepath.Join(dir, "member")
	log := filepath.Join(member, "wal")
	if !wal.Exist(log) {
		return nil
	}
	state, err := wal.Verify(zap.NewNop(), log, walpb.Snapshot{})
	if err != nil || state.Commit > 0 {
		return nil //nolint:nilerr // whatever is wrong with the log, etcd reports it
	}
	if err := os.RemoveAll(member); err != nil {
		return fmt.Errorf("removing the empty data of an interrupted start: %w", err)
	}
	return nil
}
