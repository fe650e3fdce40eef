// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/opdock/opdock/controlplane/internal/etcd"
	"github.com/opdock/opdock/controlplane/internal/snapshot"
	"github.com/opdock/opdock/controlplane/internal/state"
)

// registry is what all keys of objects begin with.
const registry = "/registry/"

// SaveOptions are the flags of `opdock-controlplane snapshot`.
type SaveOptions struct {
	Dir     string // the state folder of a cluster that runs
	Out     string // the file to write; an existing one is replaced
	Cluster string // what the snapshot calls the cluster
}

// Save writes a snapshot of a cluster that runs in another process.
func Save(ctx context.Context, o SaveOptions) error {
	dir, out := o.Dir, o.Out
	for _, path := range []*string{&dir, &out} {
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = absolute
	}
	info, source, err := connect(dir)
	if err != nil {
		return err
	}
	defer source.Close()

	// The data is on the disk before it is compressed: the cluster must not wait
	// for that, as a transaction that is open for long makes its database grow.
	if err := state.CheckRoom(filepath.Dir(out), 2*databaseSize(dir)+state.RoomToStop); err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(out), ".snapshot-")
	if err != nil {
		return state.WriteFault("writing", out, err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	database := filepath.Join(work, "db")
	if err := source.Copy(ctx, database); err != nil {
		return state.WriteFault("writing", out, err)
	}
	header := snapshot.Header{
		Kubernetes: info.Kubernetes, Emulated: emulatedIn(info.Complete), AdmissionPlugins: info.AdmissionPlugins,
		Cluster: o.Cluster, Created: time.Now().UTC().Truncate(time.Second),
	}
	if header.Revision, err = etcd.Revision(database); err != nil {
		return err
	}
	if header.Objects, err = source.Count(ctx, registry, header.Revision); err != nil {
		return err
	}
	return snapshot.Write(out, header, database)
}
