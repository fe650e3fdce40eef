// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"reflect"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	sharedv1 "github.com/opdock/opdock/api/shared/v1"
	"github.com/opdock/opdock/internal/controller"
)

// objects counts the objects of the fleet on each scrape. Counters that follow events would have to be right at all
// times; the caches already are.
type objects struct {
	arriving *arrivals
	cache    cache.Cache
}

var objectsDesc = prometheus.NewDesc("opdock_objects",
	"Number of objects, by kind and status of the condition Ready: True, False or Unknown.",
	[]string{"kind", "ready"}, nil)

// Start implements manager.Runnable: the objects are counted while this manager is the leader, so that several managers
// do not count them several times.
func (o *objects) Start(ctx context.Context) error {
	if err := metrics.Registry.Register(o); err != nil {
		return fmt.Errorf("registering the number of objects: %w", err)
	}
	defer metrics.Registry.Unregister(o)
	<-ctx.Done()
	return nil
}

// Describe implements prometheus.Collector.
func (o *objects) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- objectsDesc }

// Collect implements prometheus.Collector.
func (o *objects) Collect(collected chan<- prometheus.Metric) {
	for _, kind := range o.arriving.running() {
		count := map[metav1.ConditionStatus]int{metav1.ConditionTrue: 0, metav1.ConditionFalse: 0, metav1.ConditionUnknown: 0}
		if err := o.visit(kind, func(object any) { count[readiness(object)]++ }); err != nil {
			collected <- prometheus.NewInvalidMetric(objectsDesc, err)
			continue
		}
		for ready, number := range count {
			collected <- prometheus.MustNewConstMetric(objectsDesc, prometheus.GaugeValue, float64(number), kind.Kind, string(ready))
		}
	}
}

// visit shows all objects of a kind as they are in the cache. They must not be changed.
func (o *objects) visit(kind controller.Kind, see func(object any)) error {
	ctx := context.Background()
	informer, err := o.cache.GetInformer(ctx, kind.New(), cache.BlockUntilSynced(false))
	if err != nil || !informer.HasSynced() {
		return err
	}
	if indexed, ok := informer.(toolscache.SharedIndexInformer); ok {
		for _, object := range indexed.GetIndexer().List() {
			see(object)
		}
		return nil
	}
	// Several namespaces have an informer each, which only the cache can reach. This copies the objects, but not what
	// they point to.
	list := kind.NewList()
	if err := o.cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	return meta.EachListItem(list, func(object runtime.Object) error {
		see(object)
		return nil
	})
}

// readiness is the status of the condition Ready of any kind of the fleet.
func readiness(object any) metav1.ConditionStatus {
	conditions, _ := reflect.ValueOf(object).Elem().FieldByName("Status").FieldByName("Conditions").Interface().([]metav1.Condition)
	if ready := meta.FindStatusCondition(conditions, sharedv1.ConditionReady); ready != nil {
		return ready.Status
	}
	return metav1.ConditionUnknown
}
