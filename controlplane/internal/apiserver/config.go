// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	apiextensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericfeatures "k8s.io/apiserver/pkg/features"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/filters"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/apiserver/pkg/util/openapi"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	kubecontrolplane "k8s.io/kubernetes/pkg/controlplane"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
	generatedopenapi "k8s.io/kubernetes/pkg/generated/openapi"
	"k8s.io/kubernetes/pkg/kubeapiserver"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"

	"github.com/opdock/opdock/controlplane/internal/emulation"
	"github.com/opdock/opdock/controlplane/internal/metrics"
	"github.com/opdock/opdock/controlplane/internal/pki"
)

// loopbackLifetime is how long the loopback certificate is valid; every start creates a new
// one.
const loopbackLifetime = 3 * 365 * 24 * time.Hour

// newConfig assembles the three servers of the chain from upstream's parts. It replaces
// app.NewConfig, which creates an RSA loopback certificate. That takes longer than the start of
// etcd.
func newConfig(opts options.CompletedOptions) (*app.Config, error) {
	generic, versionedInformers, storageFactory, err := newGenericConfig(opts)
	if err != nil {
		return nil, err
	}
	kubeAPIs, resolver, initializers, err := app.CreateKubeAPIServerConfig(opts, generic, versionedInformers, storageFactory)
	if err != nil {
		return nil, err
	}
	// Many requests of our own clients fit on one connection.
	generic.SecureServing.HTTP2MaxStreamsPerConnection = 1000

	control := &kubeAPIs.ControlPlane
	extensions, err := controlplaneapiserver.CreateAPIExtensionsConfig(*generic, control.VersionedInformers, initializers, opts.CompletedOptions, opts.MasterCount, resolver,
		webhook.NewDefaultAuthenticationInfoResolverWrapper(control.ProxyTransport, generic.EgressSelector, generic.LoopbackClientConfig, generic.TracerProvider))
	if err != nil {
		return nil, err
	}
	aggregator, err := controlplaneapiserver.CreateAggregatorConfig(*generic, opts.CompletedOptions, control.VersionedInformers, resolver, control.ProxyTransport, control.PeerProxy, initializers)
	if err != nil {
		return nil, err
	}
	return &app.Config{Options: opts, KubeAPIs: kubeAPIs, ApiExtensions: extensions, Aggregator: aggregator}, nil
}

// newGenericConfig applies every group of options to what the three servers
// have in common.
func newGenericConfig(opts options.CompletedOptions) (*genericapiserver.Config, informers.SharedInformerFactory, *serverstorage.DefaultStorageFactory, error) {
	fail := func(err error) (*genericapiserver.Config, informers.SharedInformerFactory, *serverstorage.DefaultStorageFactory, error) {
		return nil, nil, nil, err
	}
	config := genericapiserver.NewConfig(legacyscheme.Codecs)
	config.Flagz = opts.Flagz
	config.MergedResourceConfig = kubecontrolplane.DefaultAPIResourceConfigSource()

	if err := opts.GenericServerRunOptions.ApplyTo(config); err != nil {
		return fail(err)
	}
	config.EffectiveVersion = emulation.Version{EffectiveVersion: config.EffectiveVersion}
	if err := applySecureServing(opts, config); err != nil {
		return fail(err)
	}
	client, err := kubernetes.NewForConfig(config.LoopbackClientConfig)
	if err != nil {
		return fail(err)
	}
	versionedInformers := informers.NewSharedInformerFactoryWithOptions(client, 10*time.Minute, informers.WithTransform(dropManagedFields))

	if err := opts.Features.ApplyTo(config, client, versionedInformers); err != nil {
		return fail(err)
	}
	if err := opts.APIEnablement.ApplyTo(config, config.MergedResourceConfig, legacyscheme.Scheme); err != nil {
		return fail(err)
	}
	if err := opts.EgressSelector.ApplyTo(config); err != nil {
		return fail(err)
	}
	if utilfeature.DefaultFeatureGate.Enabled(genericfeatures.APIServerTracing) {
		if err := opts.Traces.ApplyTo(config.EgressSelector, config); err != nil {
			return fail(err)
		}
	}
	applyOpenAPI(config)
	config.LongRunningFunc = filters.BasicLongRunningRequestCheck(
		sets.NewString("watch", "proxy"),
		sets.NewString("attach", "exec", "proxy", "log", "portforward"),
	)

	storageFactory, err := applyStorage(opts, config)
	if err != nil {
		return fail(err)
	}
	ctx := wait.ContextForChannel(config.DrainedNotify())
	if err := opts.Authentication.ApplyTo(ctx, &config.Authentication, config.SecureServing, config.EgressSelector,
		config.OpenAPIConfig, config.OpenAPIV3Config, client, versionedInformers, config.APIServerID); err != nil {
		return fail(err)
	}
	authorizer, resolver, enablesRBAC, err := controlplaneapiserver.BuildAuthorizer(ctx, opts.CompletedOptions, config.EgressSelector, config.APIServerID, versionedInformers)
	if err != nil {
		return fail(fmt.Errorf("authorization: %w", err))
	}
	config.Authorization.Authorizer, config.RuleResolver = authorizer, resolver
	if !enablesRBAC {
		config.DisabledPostStartHooks.Insert(rbacrest.PostStartHookName)
	}
	if err := opts.Audit.ApplyTo(config); err != nil {
		return fail(err)
	}
	config.AggregatedDiscoveryGroupManager = aggregated.NewResourceManager("apis")
	return config, versionedInformers, storageFactory, nil
}

// applySecureServing sets up the port and the loopback client, the latter with
// an ECDSA certificate where upstream makes two RSA keys (0.2 s on two cores).
func applySecureServing(opts options.CompletedOptions, config *genericapiserver.Config) error {
	if err := opts.SecureServing.SecureServingOptions.ApplyTo(&config.SecureServing); err != nil {
		return err
	}
	pair, err := pki.SelfSigned(genericapiserver.LoopbackClientServerNameOverride, loopbackLifetime)
	if err != nil {
		return err
	}
	provider, err := dynamiccertificates.NewStaticSNICertKeyContent("loopback", pair.CertPEM, pair.KeyPEM, genericapiserver.LoopbackClientServerNameOverride)
	if err != nil {
		return fmt.Errorf("loopback certificate: %w", err)
	}
	config.SecureServing.SNICerts = append([]dynamiccertificates.SNICertKeyContentProvider{provider}, config.SecureServing.SNICerts...)
	config.LoopbackClientConfig, err = config.SecureServing.NewLoopbackClientConfig(uuid.NewString(), pair.CertPEM)
	if err != nil {
		return fmt.Errorf("loopback client: %w", err)
	}
	config.LoopbackClientConfig.ContentType = runtime.ContentTypeProtobuf
	config.LoopbackClientConfig.DisableCompression = true
	// Upstream limits what the server asks of itself, such as an address for each Service, to 50 requests a second.
	config.LoopbackClientConfig.QPS, config.LoopbackClientConfig.Burst = -1, 0
	return nil
}

func applyOpenAPI(config *genericapiserver.Config) {
	definitions := openapi.GetOpenAPIDefinitionsWithoutDisabledFeatures(generatedopenapi.GetOpenAPIDefinitions)
	namer := openapinamer.NewDefinitionNamer(legacyscheme.Scheme, apiextensionsapiserver.Scheme, aggregatorscheme.Scheme, metrics.Scheme)
	// Two of the three servers build a (small) version 2 document at start-up,
	// each from all definitions. They may share them, for builders only read,
	// and find them made on another core when they get there.
	reference := func(name string) spec.Ref {
		short, _ := namer.GetDefinitionName(name)
		return spec.MustCreateRef("#/definitions/" + common.EscapeJsonPointer(short))
	}
	shared := sync.OnceValue(func() map[string]common.OpenAPIDefinition { return definitions(reference) })
	go shared()
	config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(func(common.ReferenceCallback) map[string]common.OpenAPIDefinition { return shared() }, namer)
	config.OpenAPIConfig.Info.Title = "Kubernetes"
	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(definitions, namer)
	config.OpenAPIV3Config.Info.Title = "Kubernetes"
}

func applyStorage(opts options.CompletedOptions, config *genericapiserver.Config) (*serverstorage.DefaultStorageFactory, error) {
	if config.EgressSelector != nil {
		opts.Etcd.StorageConfig.Transport.EgressLookup = config.EgressSelector.Lookup
	}
	opts.Etcd.StorageConfig.Transport.TracerProvider = config.TracerProvider

	factoryConfig := kubeapiserver.NewStorageFactoryConfigEffectiveVersion(config.EffectiveVersion)
	factoryConfig.APIResourceConfig = config.MergedResourceConfig
	factoryConfig.DefaultResourceEncoding.SetEffectiveVersion(config.EffectiveVersion)
	factory, err := factoryConfig.Complete(opts.Etcd).New()
	if err != nil {
		return nil, err
	}
	factory.StorageConfig.StorageObjectCountTracker = config.StorageObjectCountTracker
	return factory, opts.Etcd.ApplyWithStorageFactoryTo(factory, config)
}

// dropManagedFields keeps the informers of the API server small; none of its
// own controllers reads these fields.
func dropManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}
