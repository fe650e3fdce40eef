// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"slices"
	"time"
)

const (
	// keptLists is how many lists are kept until a watch follows, and keptListed how many objects of all of them.
	keptLists, keptListed = 64, 16 << 10
	// maxPause is how long after a list its watch begins at most. A watch that begins later may be one that begins again, and where
	// nothing is written, it begins at the version of any list.
	maxPause = 10 * time.Second
)

// lists are the latest lists of the newest version. If a watch begins where a list ended, the list has filled a cache: informers
// of other languages begin like that. Nothing in the list itself tells it from one that an operator sends to read once.
type lists []*listed

// listed is a list whose objects may turn out to be delivered.
type listed struct {
	selection
	id              uint64
	resource        Resource
	resourceVersion string
	at              time.Time
	isMetadata      bool
	objects         []*Object
}

// selection is what a list or watch selects.
type selection struct{ group, resource, namespace, labels, fields string }

func selectionOf(r *Request) selection {
	return selection{r.Resource.Group, r.Resource.Resource, r.Resource.Namespace, r.Query.LabelSelector, r.Query.FieldSelector}
}

// mayFillCache reports whether a list fills a cache if a watch from its version follows.
func mayFillCache(r *Request) bool {
	return r.Verb == "list" && r.Reconcile == 0 && r.Query != nil && r.Query.ResourceVersion == ""
}

// add keeps a list, or the next part of it.
func (l *lists) add(one *listed, isNextPart bool) {
	if earlier := l.remove(one.selection); earlier != nil && isNextPart && earlier.resourceVersion == one.resourceVersion {
		one.objects = append(earlier.objects, one.objects...)
	}
	*l = append(*l, one)
	for len(*l) > keptLists || l.size() > keptListed {
		*l = slices.Delete(*l, 0, 1)
	}
}

// size is the number of objects of all lists.
func (l *lists) size() (count int) {
	for _, one := range *l {
		count += len(one.objects)
	}
	return count
}

// remove returns what was kept of a list; nil if there is none.
func (l *lists) remove(of selection) *listed {
	i := slices.IndexFunc(*l, func(one *listed) bool { return one.selection == of })
	if i < 0 {
		return nil
	}
	found := (*l)[i]
	*l = slices.Delete(*l, i, i+1)
	return found
}

// follow returns the list that a watch follows; nil if there is none.
func (l *lists) follow(watch *Request, began time.Time) *listed {
	if watch.Verb != "watch" || watch.Query == nil {
		return nil
	}
	if list := l.remove(selectionOf(watch)); list != nil && list.resourceVersion == watch.Query.ResourceVersion && began.Sub(list.at) <= maxPause {
		return list
	}
	return nil
}

// followed returns the objects of a list as deliveries. They are compared as far as they are remembered.
func (o *observer) followed(list *listed) (deliveries []*Delivery) {
	for _, object := range list.objects {
		d := &Delivery{Watch: list.id, Resource: list.resource, Type: "ADDED", Initial: true, Object: object}
		key, made := deliveredKey(d), Version{object.UID, object.ResourceVersion}
		if list.isMetadata {
			key = key.ofMetadata()
		}
		known := o.memory.find(key)
		i := slices.IndexFunc(known.versions, func(v *version) bool { return Version{v.uid, v.resourceVersion} == made })
		if i >= 0 {
			if now := known.versions[i].object(); now != nil {
				o.describe(d, now)
				o.memory.learn(key, known.versions[i], list.id)
			}
		}
		o.shown.add(made, list.id)
		deliveries = append(deliveries, d)
	}
	return deliveries
}
