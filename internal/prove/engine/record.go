// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/opdock/opdock/internal/lens"
)

// record records the lens of a run from its start, in a file that is replaced when the run has
// ended. Without a name, it does nothing.
func (r *run) record(path string) (err error) {
	if path == "" {
		return nil
	}
	header := lens.Header{Project: r.campaign.o.Operator.Project.Name, Began: r.began, Cluster: r.cluster.Config().Host}
	if identity := r.campaign.operator.Identity(); identity != nil {
		header.Identity = identity.User()
	}
	r.keep = path
	r.recording, err = lens.Record(r.lens.Stream(), filepath.Join(r.dir, "recording.jsonl"), header, 0)
	return err
}

// endRecording puts the recording where it belongs. The lens is closed.
func (r *run) endRecording() error {
	if r.recording == nil {
		return nil
	}
	if err := r.recording.Close(); err != nil {
		return err
	}
	if err := keepFile(r.recording.Path(), r.keep); err != nil {
		return fmt.Errorf("keeping a recording: %w", err)
	}
	return nil
}

// keepFile puts a file of a run where it outlives the run, which may be on another file system.
func keepFile(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	err := os.Rename(from, to)
	if errors.Is(err, syscall.EXDEV) {
		err = copyFile(from, to)
	}
	return err
}

// copyFile copies a file to another file system.
func copyFile(from, to string) (err error) {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}

// showOnce shows the first run of a plan that is replayed.
func (r *run) showOnce() error {
	if r.campaign.o.Only == nil || r.campaign.shown.Swap(true) {
		return nil
	}
	return r.show()
}

// show records the run that is replayed, and prints its events.
func (r *run) show() error {
	if err := r.record(r.campaign.o.Replayed); err != nil {
		return err
	}
	live := r.campaign.o.Live
	if live == nil {
		return nil
	}
	r.mutex.Lock()
	r.told = live
	r.mutex.Unlock()
	r.follows.Go(func() {
		started := false
		for event := range r.lens.Stream().Follow(context.Background(), 0) {
			if !r.campaign.isTold(event) {
				continue
			}
			line := r.lineOf(event)
			if event.Process != nil && event.Process.Started && !started {
				started, line.Fault = true, false // the first start is no fault
			}
			live(line)
		}
	})
	return nil
}
