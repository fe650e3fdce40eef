// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/mod/semver"

	"github.com/opdock/opdock/controlplane/internal/etcd"
	"github.com/opdock/opdock/controlplane/internal/fault"
	"github.com/opdock/opdock/controlplane/internal/objects"
	"github.com/opdock/opdock/controlplane/internal/snapshot"
	"github.com/opdock/opdock/controlplane/internal/state"
)

// The socket and the data folder of etcd, in the state folder.
const (
	etcdSocket = "etcd.sock"
	etcdData   = "etcd"
)

// origin is what is known about data that came from another cluster.
type origin struct {
	// release is the one with which that cluster was ready, as in Info.Complete.
	release string
	plugins []string
}

// fill copies the data of another cluster into the folder, from one that runs
// or from a snapshot. The keys are not part of it: a new folder gets its own.
func (p *plane) fill(ctx context.Context) error {
	from := p.options.From
	if from == "" {
		return nil
	}
	if !p.folder.New && !p.options.Replace {
		return &fault.Error{
			Reason:  fault.KeptState,
			Message: fmt.Sprintf("there are objects in %s, which --from would replace", p.folder.Dir),
			Hint:    "choose the name of a new cluster, or replace the objects with \"opdock snapshot restore\"",
		}
	}
	if p.folder.New {
		p.folder.Info.Filling = from
		if err := p.folder.Save(); err != nil {
			return err
		}
	}
	if objects.Is(from) {
		if !p.folder.New {
			return &fault.Error{
				Reason:  fault.KeptState,
				Message: fmt.Sprintf("there are objects in %s, and others can only be imported into a new cluster", p.folder.Dir),
				Hint:    "choose the name of a new cluster",
			}
		}
		var err error
		p.imported, err = objects.Open(from)
		return err
	}
	data := p.folder.NewData()
	if err := etcd.CreateDataDir(data); err != nil {
		return state.WriteFault("creating", data, err)
	}
	var err error
	if info, statErr := os.Stat(from); statErr == nil && info.IsDir() {
		p.origin, err = copyCluster(ctx, from, etcd.Database(data), p.options.Kubernetes)
	} else {
		p.origin, err = copySnapshot(from, etcd.Database(data), p.options.Kubernetes)
	}
	if err != nil {
		if ctx.Err() != nil {
			return interrupted(ctx, "copying objects")
		}
		return err
	}
	if err := etcd.Adopt(data); err != nil {
		return state.WriteFault("preparing", data, err)
	}
	return p.folder.UseNewData()
}

// copyCluster copies the data of a cluster that runs, which does not notice.
func copyCluster(ctx context.Context, dir, to, kubernetes string) (*origin, error) {
	info, source, err := connect(dir)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	if semver.Compare(semver.MajorMinor(info.Kubernetes), semver.MajorMinor(kubernetes)) > 0 {
		return nil, &fault.Error{
			Reason:  fault.NewerState,
			Message: fmt.Sprintf("the cluster in %s runs Kubernetes %s; this control plane is %s", dir, info.Kubernetes, kubernetes),
			Hint:    "use the newer control plane for the copy as well",
		}
	}
	// Asked before and not found out on the way: a copy that fills the disk
	// would take the original along, which may be on the same one.
	if err := state.CheckRoom(filepath.Dir(to), databaseSize(dir)+state.RoomToStart); err != nil {
		return nil, err
	}
	if err := source.Copy(ctx, to); err != nil {
		return nil, state.WriteFault("copying the objects of the cluster in "+dir+" to", to, err)
	}
	return &origin{release: info.Complete, plugins: info.AdmissionPlugins}, nil
}

// connect opens the etcd of a cluster that runs in another process.
func connect(dir string) (state.Info, *etcd.Source, error) {
	info, err := state.ReadInfo(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return info, nil, notRunning(dir)
	case err != nil:
		return info, nil, err
	case info.Complete == "":
		return info, nil, &fault.Error{
			Reason:  fault.NoSource,
			Message: fmt.Sprintf("the cluster in %s has not been ready yet", dir),
			Hint:    "wait until it is ready",
		}
	}
	source, err := etcd.Connect(dir, etcdSocket)
	switch {
	case errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED):
		return info, nil, notRunning(dir)
	case err != nil:
		return info, nil, fmt.Errorf("connecting to the cluster in %s: %w", dir, err)
	}
	return info, source, nil
}

func notRunning(dir string) error {
	return &fault.Error{
		Reason:  fault.NoSource,
		Message: fmt.Sprintf("the cluster in %s is not running, so its objects cannot be copied", dir),
		Hint:    "start it first; its objects are kept",
	}
}

// databaseSize returns how many bytes the database in a state folder has; 0 if it is not known.
func databaseSize(dir string) uint64 {
	info, err := os.Stat(etcd.Database(filepath.Join(dir, etcdData)))
	if err != nil || info.Size() < 0 {
		return 0
	}
	return uint64(info.Size())
}

func copySnapshot(path, to, kubernetes string) (*origin, error) {
	file, err := snapshot.Open(path, kubernetes)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if err := state.CheckRoom(filepath.Dir(to), uint64(max(file.Header.Size, 0))+state.RoomToStart); err != nil {
		return nil, err
	}
	if err := file.Extract(to); err != nil {
		return nil, err
	}
	h := file.Header
	return &origin{release: release(h.Kubernetes, h.Emulated), plugins: h.AdmissionPlugins}, nil
}

// imported describes what became of imported objects. The log names those that were left out.
func imported(result objects.Result) string {
	message := fmt.Sprintf("%d objects are imported", result.Written)
	if result.Written == 1 {
		message = "1 object is imported"
	}
	if left := len(result.LeftOut); left > 0 {
		message += fmt.Sprintf("; %d could not be, the first is %s", left, result.LeftOut[0])
	}
	return message
}
