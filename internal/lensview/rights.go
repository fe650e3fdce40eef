// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lensview

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/rights"
	"github.com/opdock/opdock/internal/rights/granting"
)

// Grants reads the rights that a project grants to its operator.
type Grants func(context.Context) (*granting.Grants, error)

// grantsFor is how long granted rights are cached: reading them renders the manifests, and a page
// may be open for hours.
const grantsFor = 5 * time.Second

// rightsView is the state between two responses.
type rightsView struct {
	mutex   sync.Mutex
	grants  *granting.Grants
	problem error
	read    time.Time

	once    sync.Once
	earlier []*rights.Recording
	notes   []string
	all     bool // everything earlier was read
}

// Rights returns the granted rights, and those used so far.
func (v *View) Rights(ctx context.Context) (any, error) {
	grants, err := v.rights.grantsNow(ctx, v.Grants)
	if err != nil {
		return nil, fmt.Errorf("reading what is granted: %w", err)
	}
	v.rights.once.Do(func() { go v.rights.readEarlier(v.Earlier) })
	v.rights.mutex.Lock()
	recordings, notes := append([]*rights.Recording(nil), v.rights.earlier...), append([]string(nil), v.rights.notes...)
	account := ""
	if grants.Identity != nil {
		account = grants.Identity.User()
	}
	recordings = slices.DeleteFunc(recordings, func(r *rights.Recording) bool { return rights.OfOtherProgram(r.Header, account) != "" })
	if !v.rights.all {
		notes = append(notes, "earlier recordings are still being read")
	}
	v.rights.mutex.Unlock()

	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.recording.Totals = v.totals()
	report := rights.Compare(rights.Merge(append(recordings, v.recording)), grants.Granted, grants.Options)
	report.AttachMarkers(grants.Markers)
	report.Notes = append(report.Notes, notes...)
	return report, nil
}

// grantsNow reads the granted rights, unless they were just read.
func (r *rightsView) grantsNow(ctx context.Context, read Grants) (*granting.Grants, error) {
	if read == nil {
		return &granting.Grants{}, nil
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.read.IsZero() || time.Since(r.read) > grantsFor {
		grants, err := read(ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		r.grants, r.problem, r.read = grants, err, time.Now()
	}
	return r.grants, r.problem
}

// readEarlier reads recordings of earlier sessions. It leaves out unreadable ones with a note.
func (r *rightsView) readEarlier(files []string) {
	for _, file := range files {
		recording, err := rights.CollectFile(file)
		r.mutex.Lock()
		var other *lens.NotARecordingError
		switch {
		case errors.As(err, &other), errors.Is(err, os.ErrNotExist): // it was killed before it had begun, or was removed
		case err != nil:
			r.notes = append(r.notes, "an earlier recording is not counted: "+err.Error())
		default:
			r.earlier = append(r.earlier, recording)
		}
		r.mutex.Unlock()
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.all = true
}
