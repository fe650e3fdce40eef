// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata/metadatainformer"
	toolscache "k8s.io/client-go/tools/cache"
)

var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// watchCRDs wakes the arrivals at every change of a CRD that they wait for, until it is stopped. Of CRDs it reads the metadata only: their
// schemas are large.
func (a *arrivals) watchCRDs(ctx context.Context) (stop context.CancelFunc) {
	ctx, stop = context.WithCancel(ctx)
	wake := func(object any) {
		// The name of a CRD consists of its resource, a dot and its group.
		if crd, ok := object.(*metav1.PartialObjectMetadata); ok {
			if _, group, _ := strings.Cut(crd.Name, "."); a.awaits(group) {
				a.wakeUp()
			}
		}
	}
	informer := metadatainformer.NewFilteredMetadataInformer(a.client, crds, "", 0, nil, nil).Informer()
	_, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    wake,
		UpdateFunc: func(_, crd any) { wake(crd) },
	})
	if err != nil {
		a.log.Error(err, "Cannot watch CRDs. Restart the manager after you install the missing kinds")
		return stop
	}
	go informer.RunWithContext(ctx)
	return stop
}

// watchErrors hears of the failures of all watches. A CRD that is deleted makes those of its kind fail until it is back,
// which is no reason to end, and worth one line and not one per attempt.
type watchErrors struct {
	log logr.Logger

	mutex sync.Mutex
	gone  map[string]bool
}

func (w *watchErrors) handle(ctx context.Context, reflector *toolscache.Reflector, err error) {
	kind := reflector.TypeDescription()
	w.mutex.Lock()
	known := w.gone[kind]
	w.gone[kind] = apierrors.IsNotFound(err)
	w.mutex.Unlock()
	if !apierrors.IsNotFound(err) {
		toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
		return
	}
	if !known {
		w.log.Info("This kind is no longer served. Its controller continues when it is served again", "kind", kind)
	}
}
