// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/why"
)

// Change is a change of an object, whether it led to anything or not.
type Change struct {
	Object          why.Object    `json:"object"`
	Type            why.CauseType `json:"type"`
	ResourceVersion string        `json:"resourceVersion,omitempty"`
	Changes         []why.Change  `json:"changes,omitempty"`
	Changed         int           `json:"changed,omitempty"`
	By              []why.Writer  `json:"by,omitempty"`
	Seen            time.Time     `json:"seen"`
}

// keptChanges is the number of latest changes that are kept for pages that connect later or read slowly.
const keptChanges = 2000

// Changes are the latest changes of objects. A nil Changes has none. Its methods may be called from several goroutines.
type Changes struct{ *feed[Change] }

// NewChanges returns a place for changes.
func NewChanges() *Changes { return &Changes{newFeed[Change](keptChanges)} }

// Observe records a change from a watch; old is nil for a new object, and now for a deleted one. The content of
// Secrets is not recorded.
func (c *Changes) Observe(kind schema.GroupVersionKind, old, now client.Object) {
	change := Change{Type: why.Updated, Seen: time.Now()}
	object := now
	switch {
	case old == nil:
		change.Type = why.Created
		change.By = creators(now)
	case now == nil:
		change.Type, object = why.Deleted, old
	default:
		change.Changes, change.Changed, change.By = why.Compare(old, now)
		if change.Changed == 0 {
			return
		}
	}
	change.ResourceVersion = object.GetResourceVersion()
	change.Object = why.Object{
		Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Namespace: object.GetNamespace(), Name: object.GetName(), UID: string(object.GetUID()),
	}
	if kind.Kind == "Secret" && kind.Group == "" {
		for i := range change.Changes {
			change.Changes[i].Old, change.Changes[i].New = "", ""
		}
	}
	c.Add(change)
}

// creators returns the writers of an object, without its status.
func creators(object client.Object) []why.Writer {
	var writers []why.Writer
	for _, entry := range object.GetManagedFields() {
		if entry.Subresource == "" {
			writers = append(writers, why.Writer{Manager: entry.Manager, Operation: string(entry.Operation)})
		}
	}
	return writers
}

// changesMessage holds the changes since the previous message.
type changesMessage struct {
	Changes []Change `json:"changes"`
	Last    uint64   `json:"last"`
	// Lost is the number of changes that are no longer kept.
	Lost uint64 `json:"lost,omitempty"`
}

func (c *Changes) since(seen uint64) changesMessage {
	if c == nil {
		return changesMessage{Last: seen}
	}
	batch, last, lost := c.feed.since(seen, 2*keptChanges)
	return changesMessage{Changes: batch, Last: last, Lost: lost}
}

func (c *Changes) next() <-chan struct{} {
	if c == nil {
		return nil
	}
	return c.feed.next()
}
