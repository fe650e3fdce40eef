// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/uuid"
	flowcontrolbootstrap "k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	genericapiserver "k8s.io/apiserver/pkg/server"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	schedulingv1 "k8s.io/kubernetes/pkg/apis/scheduling/v1"
	kubecontrolplane "k8s.io/kubernetes/pkg/controlplane"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"
	schedulingrest "k8s.io/kubernetes/pkg/registry/scheduling/rest"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
	"k8s.io/utils/ptr"

	"github.com/opdock/opdock/controlplane/internal/controllers"
	"github.com/opdock/opdock/controlplane/internal/nodes"
)

// Upstream creates the objects that every cluster has (roles, system
// namespaces, priority classes, flow schemas) through its own API after it has
// started, some of them by hooks that first sleep for a second and hold up
// readiness. Here they are written to etcd before the server starts. The hooks still run later,
// so roles are reconciled after an upgrade exactly as upstream does it.

// deferredHooks are the upstream start-up hooks that run after readiness.
func deferredHooks() map[string]genericapiserver.PostStartHookFunc {
	return map[string]genericapiserver.PostStartHookFunc{
		rbacrest.PostStartHookName:       policy().EnsureRBACPolicy(),
		schedulingrest.PostStartHookName: schedulingrest.AddSystemPriorityClasses(),
	}
}

func (s *Server) runDeferredHooks(ctx context.Context) {
	for name, run := range deferredHooks() {
		if name == rbacrest.PostStartHookName && !s.enablesRBAC {
			continue
		}
		err := run(genericapiserver.PostStartHookContext{Context: ctx, LoopbackClientConfig: s.Loopback})
		if ctx.Err() == nil {
			logIfFailed("running "+name, err)
		}
	}
}

func policy() *rbacrest.PolicyData {
	return &rbacrest.PolicyData{
		ClusterRoles:               append(bootstrappolicy.ClusterRoles(), bootstrappolicy.ControllerRoles()...),
		ClusterRoleBindings:        append(bootstrappolicy.ClusterRoleBindings(), bootstrappolicy.ControllerRoleBindings()...),
		Roles:                      bootstrappolicy.NamespaceRoles(),
		RoleBindings:               bootstrappolicy.NamespaceRoleBindings(),
		ClusterRolesToAggregate:    bootstrappolicy.ClusterRolesToAggregate(),
		ClusterRoleBindingsToSplit: bootstrappolicy.ClusterRoleBindingsToSplit(),
	}
}

// canBootstrap is false when the objects are not for us to write: values that
// are encrypted at rest, or an etcd behind TLS, are left to the upstream hooks.
func canBootstrap(opts options.CompletedOptions) bool {
	transport := opts.Etcd.StorageConfig.Transport
	return opts.Etcd.EncryptionProviderConfigFilepath == "" && transport.CertFile == "" && transport.TrustedCAFile == ""
}

// bootstrapTimeout is for an etcd that has stopped answering. Many objects to
// import take a while.
const bootstrapTimeout = 5 * time.Minute

// bootstrap writes missing bootstrap objects to etcd.
func bootstrap(ctx context.Context, config *app.Config, o Options) error {
	ctx, cancel := context.WithTimeout(ctx, bootstrapTimeout)
	defer cancel()
	endpoints := config.Options.Etcd.StorageConfig.Transport.ServerList
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Context: ctx, DialTimeout: 10 * time.Second})
	if err != nil {
		return fmt.Errorf("connecting to etcd: %w", err)
	}
	defer func() { _ = client.Close() }()
	if o.Objects != nil {
		storage := config.Options.Etcd.StorageConfig
		result, err := o.Objects.Write(ctx, client, storage.Prefix, config.KubeAPIs.ControlPlane.StorageFactory)
		if err != nil {
			return err
		}
		o.Imported(result)
	}

	var puts []clientv3.Op
	for _, b := range bootstrapObjects(config.KubeAPIs, o) {
		put, err := putIfAbsent(config.KubeAPIs.ControlPlane.StorageFactory, b.resource, b.object)
		if err != nil {
			return err
		}
		puts = append(puts, put)
	}
	// By default, etcd accepts 128 operations at a time, including nested ones.
	for batch := range slices.Chunk(puts, 100) {
		if _, err := client.Txn(ctx).Then(batch...).Commit(); err != nil {
			return fmt.Errorf("writing bootstrap objects: %w", err)
		}
	}
	return nil
}

type bootstrapObject struct {
	resource schema.GroupResource
	object   runtime.Object
}

// bootstrapObjects returns the initial objects of a new cluster.
func bootstrapObjects(config *kubecontrolplane.Config, o Options) []bootstrapObject {
	var list []bootstrapObject
	add := func(group, resource string, object runtime.Object) {
		list = append(list, bootstrapObject{schema.GroupResource{Group: group, Resource: resource}, object})
	}
	const rbac, flow = "rbac.authorization.k8s.io", "flowcontrol.apiserver.k8s.io"

	for _, name := range sets.List(sets.New(config.ControlPlane.SystemNamespaces...).Insert(corev1.NamespaceNodeLease)) {
		add("", "namespaces", &corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelMetadataName: name}},
			Spec:       corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{corev1.FinalizerKubernetes}},
			Status:     corev1.NamespaceStatus{Phase: corev1.NamespaceActive},
		})
	}

	roles := policy()
	for _, role := range roles.ClusterRoles {
		add(rbac, "clusterroles", &role)
	}
	for _, binding := range roles.ClusterRoleBindings {
		add(rbac, "clusterrolebindings", &binding)
	}
	for _, namespace := range slices.Sorted(maps.Keys(roles.Roles)) {
		for _, role := range roles.Roles[namespace] {
			add(rbac, "roles", &role)
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(roles.RoleBindings)) {
		for _, binding := range roles.RoleBindings[namespace] {
			add(rbac, "rolebindings", &binding)
		}
	}

	for _, class := range schedulingv1.SystemPriorityClasses() {
		add("scheduling.k8s.io", "priorityclasses", class)
	}
	for _, schema := range append(flowcontrolbootstrap.MandatoryFlowSchemas, flowcontrolbootstrap.SuggestedFlowSchemas...) {
		add(flow, "flowschemas", schema.DeepCopy())
	}
	for _, level := range append(flowcontrolbootstrap.MandatoryPriorityLevelConfigurations, flowcontrolbootstrap.SuggestedPriorityLevelConfigurations...) {
		add(flow, "prioritylevelconfigurations", level.DeepCopy())
	}

	ranges := []string{config.ServiceIPRange.String()}
	if config.SecondaryServiceIPRange.IP != nil {
		ranges = append(ranges, config.SecondaryServiceIPRange.String())
	}
	add("networking.k8s.io", "servicecidrs", &networkingv1.ServiceCIDR{
		ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"},
		Spec:       networkingv1.ServiceCIDRSpec{CIDRs: ranges},
	})
	if o.Cluster {
		addClusterObjects(add, o)
	}
	return list
}

// addClusterObjects adds objects that a cluster has and a lone API server has not.
func addClusterObjects(add func(group, resource string, object runtime.Object), o Options) {
	add("rbac.authorization.k8s.io", "clusterroles", nodes.ClusterRole())
	add("rbac.authorization.k8s.io", "clusterrolebindings", nodes.ClusterRoleBinding())
	// Pods of the default namespace need not wait for the controller that creates this account in
	// every namespace.
	add("", "serviceaccounts", &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "default"}})
	// A node that is created through the API would be tainted until a controller has handled it.
	for i := range o.Nodes {
		add("", "nodes", nodes.NodeObject(i))
	}
	if o.New { // it is the user's from then on, to be changed or removed
		add("storage.k8s.io", "storageclasses", defaultStorageClass())
	}
}

// defaultStorageClass gives claims without a class a simulated volume, so StatefulSets with
// claims become ready.
func defaultStorageClass() *storagev1.StorageClass {
	return &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "standard",
			Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
		},
		Provisioner:       controllers.VolumeProvisioner,
		ReclaimPolicy:     ptr.To(corev1.PersistentVolumeReclaimDelete),
		VolumeBindingMode: ptr.To(storagev1.VolumeBindingImmediate),
	}
}

// putIfAbsent returns the etcd operation by which the API server's storage layer would create
// the object. An existing object is not changed.
func putIfAbsent(factory serverstorage.StorageFactory, resource schema.GroupResource, object runtime.Object) (clientv3.Op, error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return clientv3.Op{}, fmt.Errorf("bootstrap object of %s: %w", resource, err)
	}
	accessor.SetUID(uuid.NewUUID())
	accessor.SetCreationTimestamp(metav1.Now())
	if resource.Group == "flowcontrol.apiserver.k8s.io" || resource.Group == "scheduling.k8s.io" {
		accessor.SetGeneration(1)
	}

	storage, err := factory.NewConfig(resource, object)
	if err != nil {
		return clientv3.Op{}, fmt.Errorf("storage of %s: %w", resource, err)
	}
	value, err := runtime.Encode(storage.Codec, object)
	if err != nil {
		return clientv3.Op{}, fmt.Errorf("encoding %s %q: %w", resource, accessor.GetName(), err)
	}
	key := storage.Prefix + "/" + factory.ResourcePrefix(resource) + "/"
	if namespace := accessor.GetNamespace(); namespace != "" {
		key += namespace + "/"
	}
	key += accessor.GetName()
	return clientv3.OpTxn(
		[]clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(key), "=", 0)},
		[]clientv3.Op{clientv3.OpPut(key, string(value))},
		nil,
	), nil
}
