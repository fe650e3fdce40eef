// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lensview

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/page"
	"github.com/opdock/opdock/internal/rights"
	"github.com/opdock/opdock/internal/story"
	"github.com/opdock/opdock/internal/tree"
	"github.com/opdock/opdock/why"
)

// Open reads a recording, and returns a page about it: the same as a page that was open at the end of the session, apart from
// what watches and writes did not show, such as the conditions of objects. Grants belong to a project; a recording of
// another project is not compared with them.
func Open(path string, grants Grants, project string) (page.Options, *lens.Recorded, error) {
	file, err := os.Open(path)
	if err != nil {
		return page.Options{}, nil, fmt.Errorf("opening the recording: %w", err)
	}
	defer file.Close()
	records := page.NewInferred()
	teller := story.New(records.Add)
	shown := replay{View: New(lens.Header{}), model: tree.NewModel(), changes: page.NewChanges(), gone: map[types.UID]bool{}, sent: map[string]bool{}}
	shown.rights.all = true // there is nothing earlier
	found, err := lens.ReadRecording(file, func(e *lens.Event) error {
		teller.Add(e)
		shown.see(e)
		shown.follow(e)
		return nil
	})
	if err != nil {
		return page.Options{}, nil, fmt.Errorf("%s: %w", path, err)
	}
	teller.Flush()
	records.Since = found.Header.Began
	if project != "" && found.Header.Project == project {
		shown.Grants = grants
	}
	shown.recording.Name, shown.recording.Header = filepath.Base(path), found.Header
	shown.recording.Cut, shown.recording.Missing = found.Cut, found.Missing
	shown.totals = func() lens.Totals { return found.Totals }
	return page.Options{
		Title: titleOf(found), Tree: shown.model, Changes: shown.changes, Records: records, Traffic: shown.Traffic, Rights: shown.Rights,
		Until: found.Totals.Last,
	}, found, nil
}

func titleOf(found *lens.Recorded) string {
	h := found.Header
	what := cmp.Or(h.Project, strings.Join(h.Command, " "), "a program")
	return fmt.Sprintf("recording of %s, %s", what, h.Began.Local().Format("2006-01-02 15:04"))
}

// replay shows the objects that a recording is about.
type replay struct {
	*View

	model   *tree.Model
	changes *page.Changes
	// gone holds the UIDs of objects whose deletion a watch reported: the response to a deletion comes after the event.
	gone map[types.UID]bool
	// sent holds the UIDs of objects that the process was sent.
	sent map[string]bool
}

// follow keeps the tree as the watches and the answers to writes show it.
func (r *replay) follow(e *lens.Event) {
	switch {
	case e.Process != nil && e.Process.Started:
		clear(r.sent)
	case e.Delivery != nil && e.Delivery.Object != nil:
		if e.Delivery.Type == "DELETED" {
			r.gone[types.UID(e.Delivery.Object.UID)] = true
			r.model.Remove(types.UID(e.Delivery.Object.UID))
		} else {
			delete(r.gone, types.UID(e.Delivery.Object.UID)) // it had only left the selection of a watch
			r.place(e.Delivery.Object)
		}
		r.changed(e)
	case e.Request != nil && e.Request.Object != nil && e.Request.Object.UID != "" && !e.Request.Refused() && e.Request.Verb != "delete" && !e.Request.DryRun:
		r.place(e.Request.Object)
	}
}

// place adds an object to the tree. Like the page of a cluster, it leaves out objects such as leases and events.
func (r *replay) place(o *lens.Object) {
	if o.UID == "" || r.gone[types.UID(o.UID)] || o.Kind == "Event" || o.Group == "coordination.k8s.io" {
		return
	}
	object := tree.Object{
		Group: o.Group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, UID: types.UID(o.UID), Generation: o.Generation, Deleting: o.Deleting,
		Fleet: rights.IsCustom(o.Group),
	}
	if o.Deleting {
		object.State, object.Status = tree.Busy, "Terminating"
	}
	owners := slices.Clone(o.Owners)
	slices.SortStableFunc(owners, func(a, b lens.Owner) int {
		if a.Controller == b.Controller {
			return 0
		}
		if a.Controller {
			return -1
		}
		return 1
	})
	for _, owner := range owners {
		object.Owners = append(object.Owners, types.UID(owner.UID))
	}
	r.model.Set(object)
}

// changed shows a change that a watch reported.
func (r *replay) changed(e *lens.Event) {
	d := e.Delivery
	isNews := !d.Initial || r.sent[d.Object.UID] && d.Change != nil && !d.Change.None // after a relist
	r.sent[d.Object.UID] = true
	if !isNews || d.Fault != "" || d.Object.Kind == "Event" || d.Object.Group == "coordination.k8s.io" {
		return
	}
	change := page.Change{
		Object: why.Object{
			Group: d.Object.Group, Version: d.Object.Version, Kind: d.Object.Kind, Namespace: d.Object.Namespace, Name: d.Object.Name, UID: d.Object.UID,
		},
		ResourceVersion: d.Object.ResourceVersion, Seen: e.At,
	}
	switch d.Type {
	case "ADDED":
		change.Type = why.Created
		if d.Initial {
			change.Type, change.Changes, change.Changed, change.By = why.Updated, d.Change.Fields, d.Change.Count(), d.Change.By
		}
	case "DELETED":
		change.Type = why.Deleted
	default:
		if d.Change == nil || d.Change.Count() == 0 { // metadata alone does not show every change
			return
		}
		change.Type, change.Changes, change.Changed, change.By = why.Updated, d.Change.Fields, d.Change.Count(), d.Change.By
	}
	r.changes.Add(change)
}
