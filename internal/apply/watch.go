// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// relistPause is the time between the end of a watch and the next one.
	relistPause = time.Second
	// readInterval is the time between two reads of an object that the user may read but not watch.
	readInterval = 2 * time.Second
)

// follow calls done with the current object, and again after each change, until done returns true or an error. An
// object that does not exist is nil. Changes come from a watch; without the right to watch, follow polls.
func (s *Server) follow(ctx context.Context, object *unstructured.Unstructured, done func(live *unstructured.Unstructured) (bool, error)) error {
	for {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(object.GroupVersionKind())
		list.SetKind(object.GetKind() + "List")
		only := []client.ListOption{client.InNamespace(object.GetNamespace()), client.MatchingFields{"metadata.name": object.GetName()}}
		err := s.client.List(ctx, list, only...)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
			_, err := done(nil) // the kind is no longer served, so it has no objects
			return err
		case apierrors.IsForbidden(err):
			return s.readUntil(ctx, object, done)
		case err != nil:
			return fmt.Errorf("reading %s: %w", title(object), err)
		}
		var live *unstructured.Unstructured
		if len(list.Items) > 0 {
			live = &list.Items[0]
		}
		if ended, err := done(live); ended || err != nil {
			return err
		}
		changes, err := s.client.Watch(ctx, list, append(only, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}})...)
		switch {
		case apierrors.IsForbidden(err):
			return s.readUntil(ctx, object, done)
		case err != nil && ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			ended, err := consume(changes, done)
			if ended || err != nil {
				return err
			}
		}
		// The server ends watches after a while, and refuses watches of a kind that it does not serve
		// yet.
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(relistPause):
		}
	}
}

// consume calls done with each change until the watch ends.
func consume(changes watch.Interface, done func(*unstructured.Unstructured) (bool, error)) (ended bool, err error) {
	defer changes.Stop()
	for change := range changes.ResultChan() {
		live, _ := change.Object.(*unstructured.Unstructured)
		switch change.Type {
		case watch.Added, watch.Modified:
		case watch.Deleted:
			live = nil
		default:
			continue // an error is followed by the end
		}
		if ended, err := done(live); ended || err != nil {
			return ended, err
		}
	}
	return false, nil
}

// readUntil is follow for users who may not watch.
func (s *Server) readUntil(ctx context.Context, object *unstructured.Unstructured, done func(*unstructured.Unstructured) (bool, error)) error {
	for {
		live := empty(object)
		err := s.client.Get(ctx, client.ObjectKeyFromObject(object), live)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
			live = nil
		case err != nil:
			return fmt.Errorf("reading %s: %w", title(object), err)
		}
		if ended, err := done(live); ended || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(readInterval):
		}
	}
}
