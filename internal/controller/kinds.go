// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller is the list of the kinds of the fleet. The scheme, the manager, the installation of the CRDs, the
// command line and the tests are fed by it: a new kind is one more line here.
package controller

import (
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/opdock/opdock/api/app/v1"
	appv1alpha1 "github.com/opdock/opdock/api/app/v1alpha1"
	collectorv1 "github.com/opdock/opdock/api/collector/v1"
	kappv1 "github.com/opdock/opdock/api/kapp/v1"
	kubegroupv1 "github.com/opdock/opdock/api/kubegroup/v1"
	robotv1 "github.com/opdock/opdock/api/robot/v1"
	"github.com/opdock/opdock/internal/controller/appservice"
	"github.com/opdock/opdock/internal/controller/collector"
	"github.com/opdock/opdock/internal/controller/kapp"
	"github.com/opdock/opdock/internal/controller/podcluster"
	"github.com/opdock/opdock/internal/controller/robot"
	"github.com/opdock/opdock/internal/flow"
)

// Kind is one kind of the fleet.
type Kind struct {
	schema.GroupVersionKind

	// Plural is the name of its resource.
	Plural string
	// AddToScheme adds all its versions.
	AddToScheme func(*runtime.Scheme) error
	// New returns an empty object and NewList an empty list.
	New     func() client.Object
	NewList func() client.ObjectList
	// Children are the types of objects that it creates. The manager's cache holds only objects with the label of
	// the fleet.
	Children []client.Object
	// Setup adds its controller to the manager.
	Setup func(ctrl.Manager, flow.Options) error
}

// CRD is the name of its CustomResourceDefinition.
func (k Kind) CRD() string { return k.Plural + "." + k.Group }

// Kinds are the kinds of the fleet.
var Kinds = []Kind{
	{
		GroupVersionKind: appv1.GroupVersion.WithKind("AppService"), Plural: "appservices",
		AddToScheme: both(appv1.AddToScheme, appv1alpha1.AddToScheme),
		New:         func() client.Object { return &appv1.AppService{} },
		NewList:     func() client.ObjectList { return &appv1.AppServiceList{} },
		Children: []client.Object{
			&appsv1.Deployment{}, &corev1.Service{}, &corev1.Pod{}, &autoscalingv2.HorizontalPodAutoscaler{},
			&networkingv1.Ingress{}, &networkingv1.NetworkPolicy{}, &policyv1.PodDisruptionBudget{},
		},
		Setup: appservice.Setup,
	},
	{
		GroupVersionKind: kappv1.GroupVersion.WithKind("KAPP"), Plural: "kapps",
		AddToScheme: kapp.AddToScheme,
		New:         func() client.Object { return &kappv1.KAPP{} },
		NewList:     func() client.ObjectList { return &kappv1.KAPPList{} },
		// Its children are objects of the other kinds, which are cached whether they belong to a KAPP or not.
		Setup: kapp.Setup,
	},
	{
		GroupVersionKind: collectorv1.GroupVersion.WithKind("Collector"), Plural: "collectors",
		AddToScheme: collectorv1.AddToScheme,
		New:         func() client.Object { return &collectorv1.Collector{} },
		NewList:     func() client.ObjectList { return &collectorv1.CollectorList{} },
		Children:    []client.Object{&corev1.ConfigMap{}},
		Setup:       collector.Setup,
	},
	{
		GroupVersionKind: robotv1.GroupVersion.WithKind("Robot"), Plural: "robots",
		AddToScheme: robotv1.AddToScheme,
		New:         func() client.Object { return &robotv1.Robot{} },
		NewList:     func() client.ObjectList { return &robotv1.RobotList{} },
		Children:    []client.Object{&appsv1.Deployment{}, &corev1.Pod{}},
		Setup:       robot.Setup,
	},
	{
		GroupVersionKind: kubegroupv1.GroupVersion.WithKind("PodCluster"), Plural: "podclusters",
		AddToScheme: kubegroupv1.AddToScheme,
		New:         func() client.Object { return &kubegroupv1.PodCluster{} },
		NewList:     func() client.ObjectList { return &kubegroupv1.PodClusterList{} },
		Children:    []client.Object{&corev1.Pod{}, &appsv1.ControllerRevision{}},
		Setup:       podcluster.Setup,
	},
}

// NewScheme returns a scheme with the kinds of the fleet and of Kubernetes.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	for _, kind := range Kinds {
		if err := kind.AddToScheme(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

func both(first, second func(*runtime.Scheme) error) func(*runtime.Scheme) error {
	return func(scheme *runtime.Scheme) error {
		if err := first(scheme); err != nil {
			return err
		}
		return second(scheme)
	}
}
