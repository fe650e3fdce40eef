// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/metrics/pkg/apis/metrics"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// selects turns the selectors of a list request into a condition. Names and namespaces are the only fields.
func selects(options *internalversion.ListOptions) func(namespace, name string, of map[string]string) bool {
	byLabel, byField := labels.Everything(), fields.Everything()
	if options != nil && options.LabelSelector != nil {
		byLabel = options.LabelSelector
	}
	if options != nil && options.FieldSelector != nil {
		byField = options.FieldSelector
	}
	return func(namespace, name string, of map[string]string) bool {
		return byLabel.Matches(labels.Set(of)) &&
			byField.Matches(fields.Set{"metadata.name": name, "metadata.namespace": namespace})
	}
}

// podStorage serves pods.metrics.k8s.io.
type podStorage struct{ source }

func (podStorage) New() runtime.Object     { return &metrics.PodMetrics{} }
func (podStorage) NewList() runtime.Object { return &metrics.PodMetricsList{} }
func (podStorage) Destroy()                {}
func (podStorage) Kind() string            { return "PodMetrics" }
func (podStorage) NamespaceScoped() bool   { return true }
func (podStorage) GetSingularName() string { return "" }

func (podStorage) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return rest.NewDefaultTableConvertor(v1beta1.Resource("pods")).ConvertToTable(ctx, object, options)
}

func (s podStorage) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	selected := selects(options)
	items, err := s.podMetrics(genericapirequest.NamespaceValue(ctx), func(pod *corev1.Pod) bool {
		return selected(pod.Namespace, pod.Name, pod.Labels)
	})
	return &metrics.PodMetricsList{Items: items}, err
}

func (s podStorage) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	items, err := s.podMetrics(genericapirequest.NamespaceValue(ctx), func(pod *corev1.Pod) bool { return pod.Name == name })
	if err == nil && len(items) != 1 {
		err = apierrors.NewNotFound(v1beta1.Resource("pods"), name)
	}
	if err != nil {
		return nil, err
	}
	return &items[0], nil
}

// nodeStorage serves nodes.metrics.k8s.io.
type nodeStorage struct{ source }

func (nodeStorage) New() runtime.Object     { return &metrics.NodeMetrics{} }
func (nodeStorage) NewList() runtime.Object { return &metrics.NodeMetricsList{} }
func (nodeStorage) Destroy()                {}
func (nodeStorage) Kind() string            { return "NodeMetrics" }
func (nodeStorage) NamespaceScoped() bool   { return false }
func (nodeStorage) GetSingularName() string { return "" }

func (nodeStorage) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return rest.NewDefaultTableConvertor(v1beta1.Resource("nodes")).ConvertToTable(ctx, object, options)
}

func (s nodeStorage) List(_ context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	selected := selects(options)
	items, err := s.nodeMetrics(func(node *corev1.Node) bool { return selected("", node.Name, node.Labels) })
	return &metrics.NodeMetricsList{Items: items}, err
}

func (s nodeStorage) Get(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	items, err := s.nodeMetrics(func(node *corev1.Node) bool { return node.Name == name })
	if err == nil && len(items) != 1 {
		err = apierrors.NewNotFound(v1beta1.Resource("nodes"), name)
	}
	if err != nil {
		return nil, err
	}
	return &items[0], nil
}

var (
	_ rest.KindProvider = podStorage{}
	_ rest.Getter       = podStorage{}
	_ rest.Lister       = podStorage{}
	_ rest.Getter       = nodeStorage{}
	_ rest.Lister       = nodeStorage{}
)
