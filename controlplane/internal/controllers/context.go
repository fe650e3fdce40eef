// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	cacheddiscovery "k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/keyutil"
	controllermetrics "k8s.io/component-base/metrics/prometheus/controllers"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	kcmconfig "k8s.io/kubernetes/pkg/controller/apis/config"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	serviceaccountcontroller "k8s.io/kubernetes/pkg/controller/serviceaccount"
	"k8s.io/kubernetes/pkg/serviceaccount"

	"github.com/opdock/opdock/controlplane/internal/identity"
)

// newContext does the same as app.CreateControllerContext, without waiting for a healthy API
// server: that wait polls once a second, and our informers can sync while the server is still
// starting.
func newContext(ctx context.Context, loopback *rest.Config, config *kcmconfig.KubeControllerManagerConfiguration) (app.ControllerContext, error) {
	fail := func(err error) (app.ControllerContext, error) {
		return app.ControllerContext{}, fmt.Errorf("clients of the controllers: %w", err)
	}
	root := identity.As(loopback, identity.ControllerManager, "kube-controller-manager")
	client, err := kubernetes.NewForConfig(root)
	if err != nil {
		return fail(err)
	}
	metadataClient, err := metadata.NewForConfig(root)
	if err != nil {
		return fail(err)
	}
	// Resyncs are spread so that controllers do not all list at once.
	resync := func() time.Duration {
		return time.Duration(float64(config.Generic.MinResyncPeriod.Duration) * (1 + rand.Float64())) //nolint:gosec // not a secret
	}
	shared := informers.NewSharedInformerFactoryWithOptions(client, resync(), informers.WithTransform(dropManagedFields))
	sharedMetadata := metadatainformer.NewSharedInformerFactoryWithOptions(metadataClient, resync(), metadatainformer.WithTransform(dropManagedFields))

	mapper := restmapper.NewDeferredDiscoveryRESTMapper(cacheddiscovery.NewMemCacheClient(client.Discovery()))
	go wait.UntilWithContext(ctx, func(context.Context) { mapper.Reset() }, 30*time.Second)

	c := app.ControllerContext{
		ClientBuilder:                   identity.ControllerClients{Loopback: loopback},
		InformerFactory:                 shared,
		ObjectOrMetadataInformerFactory: informerfactory.NewInformerFactory(shared, sharedMetadata),
		ComponentConfig:                 *config,
		RESTMapper:                      mapper,
		InformersStarted:                make(chan struct{}),
		ResyncPeriod:                    resync,
		ControllerManagerMetrics:        controllermetrics.NewControllerManagerMetrics("kube-controller-manager"),
	}
	ignored := map[schema.GroupResource]struct{}{}
	for _, r := range config.GarbageCollectorController.GCIgnoredResources {
		ignored[schema.GroupResource{Group: r.Group, Resource: r.Resource}] = struct{}{}
	}
	c.GraphBuilder = garbagecollector.NewDependencyGraphBuilder(ctx, metadataClient, mapper, ignored, c.ObjectOrMetadataInformerFactory, c.InformersStarted)
	controllermetrics.Register()
	return c, nil
}

// tokenController fills secrets of type service-account-token.
type tokenController struct {
	*serviceaccountcontroller.TokensController
	workers int
}

func (tokenController) Name() string { return names.ServiceAccountTokenController }

func (c tokenController) Run(ctx context.Context) { c.TokensController.Run(ctx, c.workers) }

func newTokenController(ctx context.Context, c app.ControllerContext, o Options) (app.Controller, error) {
	if o.ServiceAccountKeyFile == "" {
		return nil, nil
	}
	key, err := keyutil.PrivateKeyFromFile(o.ServiceAccountKeyFile)
	if err != nil {
		return nil, fmt.Errorf("reading the service account key: %w", err)
	}
	generator, err := serviceaccount.JWTTokenGenerator(serviceaccount.LegacyIssuer, key)
	if err != nil {
		return nil, fmt.Errorf("signing service account tokens: %w", err)
	}
	rootCA, err := os.ReadFile(o.RootCAFile)
	if err != nil {
		return nil, fmt.Errorf("reading the root certificate: %w", err)
	}
	// It acts for kube-controller-manager itself, as upstream's does.
	client, err := kubernetes.NewForConfig(identity.As(o.Loopback, identity.ControllerManager, "kube-controller-manager/tokens-controller"))
	if err != nil {
		return nil, err
	}
	controller, err := serviceaccountcontroller.NewTokensController(
		klog.FromContext(ctx),
		c.InformerFactory.Core().V1().ServiceAccounts(),
		c.InformerFactory.Core().V1().Secrets(),
		client,
		serviceaccountcontroller.TokensControllerOptions{TokenGenerator: generator, RootCA: rootCA},
	)
	if err != nil {
		return nil, fmt.Errorf("building the token controller: %w", err)
	}
	return tokenController{controller, int(c.ComponentConfig.SAController.ConcurrentSATokenSyncs)}, nil
}

// dropManagedFields keeps the informers small; no controller reads these fields.
func dropManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}
