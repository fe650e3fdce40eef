// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package kapp

import (
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/opdock/opdock/api/app/v1"
	collectorv1 "github.com/opdock/opdock/api/collector/v1"
	kappv1 "github.com/opdock/opdock/api/kapp/v1"
	kubegroupv1 "github.com/opdock/opdock/api/kubegroup/v1"
	robotv1 "github.com/opdock/opdock/api/robot/v1"
)

// componentKind is a kind that a component can be of.
type componentKind struct {
	schema.GroupVersionKind

	new        func() client.Object
	newList    func() client.ObjectList
	conditions func(client.Object) []metav1.Condition
	// installed is set when the server serves the kind and its objects are watched.
	installed atomic.Bool
}

// is reports whether objects of that version and kind are of this kind. All versions of a kind
// have the same schema here, so one version is enough to watch and apply them all.
func (k *componentKind) is(gvk schema.GroupVersionKind) bool {
	return k.GroupKind() == gvk.GroupKind() && (k.Version == gvk.Version || k.Kind == "AppService" && gvk.Version == "v1alpha1")
}

// AddToScheme adds KAPPs and every kind that a component can be of.
func AddToScheme(scheme *runtime.Scheme) error {
	for _, add := range []func(*runtime.Scheme) error{
		kappv1.AddToScheme, appv1.AddToScheme, kubegroupv1.AddToScheme, robotv1.AddToScheme, collectorv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	return nil
}

func componentKinds() []*componentKind {
	return []*componentKind{
		{
			GroupVersionKind: appv1.GroupVersion.WithKind("AppService"),
			new:              func() client.Object { return &appv1.AppService{} },
			newList:          func() client.ObjectList { return &appv1.AppServiceList{} },
			conditions:       func(o client.Object) []metav1.Condition { return o.(*appv1.AppService).Status.Conditions },
		},
		{
			GroupVersionKind: kubegroupv1.GroupVersion.WithKind("PodCluster"),
			new:              func() client.Object { return &kubegroupv1.PodCluster{} },
			newList:          func() client.ObjectList { return &kubegroupv1.PodClusterList{} },
			conditions:       func(o client.Object) []metav1.Condition { return o.(*kubegroupv1.PodCluster).Status.Conditions },
		},
		{
			GroupVersionKind: robotv1.GroupVersion.WithKind("Robot"),
			new:              func() client.Object { return &robotv1.Robot{} },
			newList:          func() client.ObjectList { return &robotv1.RobotList{} },
			conditions:       func(o client.Object) []metav1.Condition { return o.(*robotv1.Robot).Status.Conditions },
		},
		{
			GroupVersionKind: collectorv1.GroupVersion.WithKind("Collector"),
			new:              func() client.Object { return &collectorv1.Collector{} },
			newList:          func() client.ObjectList { return &collectorv1.CollectorList{} },
			conditions:       func(o client.Object) []metav1.Condition { return o.(*collectorv1.Collector).Status.Conditions },
		},
	}
}
