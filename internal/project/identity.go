// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	rbacGroup        = "rbac.authorization.k8s.io"
	defaultNamespace = "default"
	// defaultAccount is the service account that every namespace has, and that pods use by default.
	defaultAccount = "default"
)

// Identity is who the operator is on a server, and the objects that make it so.
type Identity struct {
	Namespace      string
	ServiceAccount string
	// Objects are the Namespace, ServiceAccount, roles and bindings, in the order in which they can be applied.
	Objects []*unstructured.Unstructured
	// Others are the other roles of the manifests, which the operator may bind to accounts that it creates. Without a binding they
	// grant nothing.
	Others []*unstructured.Unstructured
	// Completed are the names of bindings that name the account without its namespace, which Objects have. API servers
	// refuse them without; a kustomization for all namespaces may leave it out, and expects its users to set it.
	Completed []string
}

// User returns the user name of the operator.
func (i *Identity) User() string {
	return "system:serviceaccount:" + i.Namespace + ":" + i.ServiceAccount
}

// Identity returns the identity of the operator's pods in its manifests; nil if there is none.
func (p *Project) Identity(ctx context.Context) (*Identity, error) {
	manifests, err := p.Manifests(ctx)
	if err != nil {
		return nil, err
	}
	return IdentityIn(manifests), nil
}

// IdentityIn is the identity that manifests contain: that of the operator's workload or, if they have none, of their only
// ServiceAccount. A workload that names no account runs as the one called default, which every namespace has: this is how
// kubebuilder v2 does it. It is nil if the manifests give no account any rights, and have none.
func IdentityIn(manifests []*unstructured.Unstructured) *Identity {
	manifests = inHome(manifests)
	identity, account := accountIn(manifests)
	if identity == nil {
		return nil
	}
	roles, bindings := rightsOf(manifests, identity)
	if account == nil && len(bindings) == 0 {
		return nil
	}
	var own []*unstructured.Unstructured
	if account != nil {
		account = account.DeepCopy()
		account.SetNamespace(identity.Namespace)
		own = append(own, account)
	}
	own = append(append(own, roles...), bindings...)
	namespaces := map[string]bool{}
	for _, object := range own {
		namespaces[object.GetNamespace()] = true
	}
	for _, namespace := range only(manifests, schema.GroupKind{Kind: "Namespace"}) {
		if namespaces[namespace.GetName()] || namespace.GetName() == identity.Namespace {
			identity.Objects = append(identity.Objects, namespace)
		}
	}
	identity.Objects = append(identity.Objects, own...)
	namespaces[""], namespaces[identity.Namespace] = true, true
	identity.Others = otherRoles(manifests, roles, namespaces)
	return identity
}

// ofEveryCluster are the ClusterRoles that every cluster has, like those whose names begin with system:.
var ofEveryCluster = []string{"cluster-admin", "admin", "edit", "view"}

func isOfEveryCluster(role *unstructured.Unstructured) bool {
	return slices.Contains(ofEveryCluster, role.GetName()) || strings.HasPrefix(role.GetName(), "system:")
}

// served returns a copy of a role in the version that API servers serve. Old manifests may have another one, with the same fields.
func served(role *unstructured.Unstructured) *unstructured.Unstructured {
	role = role.DeepCopy()
	role.SetAPIVersion(rbacGroup + "/v1")
	return role
}

// Roles returns the operator's own roles and the others of the manifests, except those that every cluster has and may bind. Without
// a binding they grant nothing, and the operator may bind each of them to accounts that it creates.
func (i *Identity) Roles() (roles []*unstructured.Unstructured) {
	for _, kind := range []string{"ClusterRole", "Role"} {
		for _, role := range only(i.Objects, schema.GroupKind{Group: rbacGroup, Kind: kind}) {
			if !isOfEveryCluster(role) {
				roles = append(roles, served(role))
			}
		}
	}
	return append(roles, i.Others...)
}

// otherRoles are the roles among manifests that are not the operator's own, except those in namespaces that may not exist.
func otherRoles(manifests, own []*unstructured.Unstructured, namespaces map[string]bool) (others []*unstructured.Unstructured) {
	key := func(role *unstructured.Unstructured) string {
		return role.GetKind() + " " + role.GetNamespace() + "/" + role.GetName()
	}
	known := map[string]bool{}
	for _, role := range own {
		known[key(role)] = true
	}
	for _, kind := range []string{"ClusterRole", "Role"} {
		for _, role := range only(manifests, schema.GroupKind{Group: rbacGroup, Kind: kind}) {
			if kind == "Role" {
				role = withNamespace(role)
			}
			if known[key(role)] || !namespaces[role.GetNamespace()] || isOfEveryCluster(role) {
				continue
			}
			known[key(role)] = true
			others = append(others, served(role))
		}
	}
	return others
}

// accountIn finds out which account the operator has. There is no object of it if it is one that the cluster creates.
func accountIn(manifests []*unstructured.Unstructured) (*Identity, *unstructured.Unstructured) {
	accounts := only(manifests, schema.GroupKind{Kind: "ServiceAccount"})
	of := func(account *unstructured.Unstructured) (*Identity, *unstructured.Unstructured) {
		return &Identity{Namespace: namespaceOf(account), ServiceAccount: account.GetName()}, account
	}
	workload := Workload(manifests)
	if workload != nil {
		name := accountName(workload)
		if i := slices.IndexFunc(accounts, func(one *unstructured.Unstructured) bool {
			return one.GetName() == name && namespaceOf(one) == namespaceOf(workload)
		}); i >= 0 {
			return of(accounts[i])
		}
		if name == defaultAccount {
			return &Identity{Namespace: namespaceOf(workload), ServiceAccount: defaultAccount}, nil
		}
	}
	if len(accounts) == 1 {
		return of(accounts[0])
	}
	if workload == nil && len(accounts) == 0 {
		return onlySubject(manifests), nil
	}
	return nil, nil
}

// MissingAccount describes the workload and names its service account if the manifests do not have that account; both are empty if
// they do. The cluster creates no pods for such a workload.
func MissingAccount(manifests []*unstructured.Unstructured) (workload, account string) {
	runs := Workload(manifests)
	if runs == nil {
		return "", ""
	}
	name := accountName(runs)
	if name == defaultAccount || slices.ContainsFunc(only(manifests, schema.GroupKind{Kind: "ServiceAccount"}), func(one *unstructured.Unstructured) bool {
		return one.GetName() == name && namespaceOf(one) == namespaceOf(runs)
	}) {
		return "", ""
	}
	return runs.GetKind() + " " + runs.GetName(), name
}

// accountName is the name of the account that the pods of a workload have.
func accountName(workload *unstructured.Unstructured) string {
	for _, field := range []string{"serviceAccountName", "serviceAccount"} { // the second is the old name of the first
		if name, _, _ := unstructured.NestedString(workload.Object, "spec", "template", "spec", field); name != "" {
			return name
		}
	}
	return defaultAccount
}

// onlySubject is the account that all bindings name: of an operator whose manifests are only about its rights. It is nil if
// they name several or, because an account has to be created, another than the default one.
func onlySubject(manifests []*unstructured.Unstructured) *Identity {
	var identity *Identity
	for _, kind := range []string{"ClusterRoleBinding", "RoleBinding"} {
		for _, binding := range only(manifests, schema.GroupKind{Group: rbacGroup, Kind: kind}) {
			subjects, _, _ := unstructured.NestedSlice(binding.Object, "subjects")
			for _, one := range subjects {
				subject, _ := one.(map[string]any)
				if subject["kind"] != "ServiceAccount" {
					continue
				}
				name, _ := subject["name"].(string)
				namespace, _ := subject["namespace"].(string)
				named := Identity{Namespace: cmp.Or(namespace, namespaceOf(binding)), ServiceAccount: name}
				switch {
				case identity == nil && name == defaultAccount:
					identity = &named
				case identity == nil, identity.User() != named.User():
					return nil
				}
			}
		}
	}
	return identity
}

// Workload is the Deployment, StatefulSet or DaemonSet that the operator runs in: the only one, or the one with a
// container that is called manager. It is nil if there is none, or if it cannot be told.
func Workload(manifests []*unstructured.Unstructured) *unstructured.Unstructured {
	var workloads []*unstructured.Unstructured
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		workloads = append(workloads, only(manifests, schema.GroupKind{Group: "apps", Kind: kind})...)
	}
	if len(workloads) == 1 {
		return workloads[0]
	}
	var managers []*unstructured.Unstructured
	for _, workload := range workloads {
		if slices.ContainsFunc(Containers(workload), func(container map[string]any) bool { return container["name"] == "manager" }) {
			managers = append(managers, workload)
		}
	}
	if len(managers) == 1 {
		return managers[0]
	}
	return nil
}

// Containers returns copies of the containers of a workload's pods.
func Containers(workload *unstructured.Unstructured) []map[string]any {
	list, _, _ := unstructured.NestedSlice(workload.Object, "spec", "template", "spec", "containers")
	var containers []map[string]any
	for _, one := range list {
		if container, ok := one.(map[string]any); ok {
			containers = append(containers, container)
		}
	}
	return containers
}

// rightsOf are the bindings that name the identity, and the roles that they give it.
func rightsOf(manifests []*unstructured.Unstructured, identity *Identity) (roles, bindings []*unstructured.Unstructured) {
	wanted := map[string]bool{}
	for _, kind := range []string{"ClusterRoleBinding", "RoleBinding"} {
		for _, binding := range only(manifests, schema.GroupKind{Group: rbacGroup, Kind: kind}) {
			if kind == "RoleBinding" {
				binding = withNamespace(binding)
			}
			binding, completed := withAccountNamespace(binding, identity)
			if !binds(binding, identity) {
				continue
			}
			if completed {
				identity.Completed = append(identity.Completed, kind+" "+binding.GetName())
			}
			bindings = append(bindings, binding)
			role, _, _ := unstructured.NestedStringMap(binding.Object, "roleRef")
			wanted[role["kind"]+" "+roleNamespace(role["kind"], binding.GetNamespace())+"/"+role["name"]] = true
		}
	}
	clusterRoles := only(manifests, schema.GroupKind{Group: rbacGroup, Kind: "ClusterRole"})
	named := func(role *unstructured.Unstructured) bool {
		return wanted[role.GetKind()+" "+role.GetNamespace()+"/"+role.GetName()]
	}
	// A role that gathers others has nothing of its own, and no binding names those others.
	gathers := slices.ContainsFunc(clusterRoles, func(role *unstructured.Unstructured) bool {
		_, aggregates, _ := unstructured.NestedMap(role.Object, "aggregationRule")
		return aggregates && named(role)
	})
	for _, role := range clusterRoles {
		if gathers || named(role) {
			roles = append(roles, role)
		}
	}
	for _, role := range only(manifests, schema.GroupKind{Group: rbacGroup, Kind: "Role"}) {
		if role = withNamespace(role); named(role) {
			roles = append(roles, role)
		}
	}
	return roles, bindings
}

func roleNamespace(kind, namespace string) string {
	if kind == "ClusterRole" {
		return ""
	}
	return namespace
}

// withAccountNamespace returns the binding with the namespace of the identity where it names its account without one.
func withAccountNamespace(binding *unstructured.Unstructured, identity *Identity) (complete *unstructured.Unstructured, changed bool) {
	complete = binding.DeepCopy()
	subjects, _, _ := unstructured.NestedSlice(complete.Object, "subjects")
	for _, one := range subjects {
		subject, _ := one.(map[string]any)
		namespace, _ := subject["namespace"].(string)
		if subject["kind"] != "ServiceAccount" || subject["name"] != identity.ServiceAccount || namespace != "" {
			continue
		}
		if in := binding.GetNamespace(); in == "" || in == identity.Namespace {
			subject["namespace"], changed = identity.Namespace, true
		}
	}
	if !changed {
		return binding, false
	}
	_ = unstructured.SetNestedSlice(complete.Object, subjects, "subjects") // it was one
	return complete, true
}

func binds(binding *unstructured.Unstructured, identity *Identity) bool {
	subjects, _, _ := unstructured.NestedSlice(binding.Object, "subjects")
	return slices.ContainsFunc(subjects, func(one any) bool {
		subject, ok := one.(map[string]any)
		if !ok {
			return false
		}
		namespace, _ := subject["namespace"].(string)
		if namespace == "" {
			namespace = binding.GetNamespace()
		}
		switch subject["kind"] {
		case "ServiceAccount":
			return subject["name"] == identity.ServiceAccount && namespace == identity.Namespace
		case "Group":
			return subject["name"] == "system:serviceaccounts" || subject["name"] == "system:serviceaccounts:"+identity.Namespace
		default:
			return false
		}
	})
}

func only(objects []*unstructured.Unstructured, kind schema.GroupKind) []*unstructured.Unstructured {
	var result []*unstructured.Unstructured
	for _, object := range objects {
		if object.GroupVersionKind().GroupKind() == kind {
			result = append(result, object)
		}
	}
	return result
}

func namespaceOf(object *unstructured.Unstructured) string {
	if namespace := object.GetNamespace(); namespace != "" {
		return namespace
	}
	return defaultNamespace
}

// withNamespace returns the object with its default namespace.
func withNamespace(object *unstructured.Unstructured) *unstructured.Unstructured {
	if object.GetNamespace() != "" {
		return object
	}
	object = object.DeepCopy()
	object.SetNamespace(defaultNamespace)
	return object
}
