// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// resource is a kind that a cluster serves.
type resource struct {
	schema.GroupVersionResource
	metav1.APIResource
	// guessed says that no discovery, list of kinds or CRD confirms this, so the scope may be another one.
	guessed bool
}

// alwaysImported are kinds that others need.
var alwaysImported = []schema.GroupResource{namespaceResource, nodeResource, crdResource}

// isCalled reports whether a name means this kind: a kind, plural, singular or short name, alone or with its group or
// with version and group, as kubectl takes it.
func (r resource) isCalled(name string) bool {
	name, rest, qualified := strings.Cut(strings.ToLower(strings.TrimSpace(name)), ".")
	group := r.GroupVersionResource.Group
	if qualified && rest != group && rest != r.GroupVersionResource.Version+"."+group {
		return false
	}
	return name == r.Name || name == r.SingularName || name == strings.ToLower(r.Kind) || slices.Contains(r.ShortNames, name)
}

// wanted reports whether the kinds that were asked for include this one.
func (r resource) wanted(kinds []string) bool {
	return len(kinds) == 0 || slices.Contains(alwaysImported, r.GroupResource()) || slices.ContainsFunc(kinds, r.isCalled)
}

// checkKinds returns an error if some of the kinds that were asked for are not known, or cannot be imported.
func checkKinds(kinds []string, known []resource) error {
	var unknown []string
	for _, kind := range kinds {
		called := slices.DeleteFunc(slices.Clone(known), func(r resource) bool { return !r.isCalled(kind) })
		switch {
		case len(called) == 0:
			unknown = append(unknown, strconv.Quote(kind))
		case !slices.ContainsFunc(called, func(r resource) bool { return !isInternal(r.GroupResource()) }):
			return fmt.Errorf("%q cannot be imported: a new cluster has its own", kind)
		}
	}
	switch len(unknown) {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("the source has no kind %s that can be listed", unknown[0])
	}
	return fmt.Errorf("the source has no kinds %s that can be listed", strings.Join(unknown, ", "))
}

// builtInKinds returns Kubernetes' own kinds that have objects. A dump does not say how they are served, and a guess
// from the kind has neither the scope nor the short names.
func builtInKinds() map[schema.GroupKind]resource {
	const clusterWide, inNamespaces = false, true
	kinds := map[schema.GroupKind]resource{}
	for _, k := range []struct {
		group, kind, plural string
		namespaced          bool
		shortNames          string
	}{
		{"", "ComponentStatus", "componentstatuses", clusterWide, "cs"},
		{"", "ConfigMap", "configmaps", inNamespaces, "cm"},
		{"", "Endpoints", "endpoints", inNamespaces, "ep"},
		{"", "Event", "events", inNamespaces, "ev"},
		{"", "LimitRange", "limitranges", inNamespaces, "limits"},
		{"", "Namespace", "namespaces", clusterWide, "ns"},
		{"", "Node", "nodes", clusterWide, "no"},
		{"", "PersistentVolumeClaim", "persistentvolumeclaims", inNamespaces, "pvc"},
		{"", "PersistentVolume", "persistentvolumes", clusterWide, "pv"},
		{"", "Pod", "pods", inNamespaces, "po"},
		{"", "PodTemplate", "podtemplates", inNamespaces, ""},
		{"", "ReplicationController", "replicationcontrollers", inNamespaces, "rc"},
		{"", "ResourceQuota", "resourcequotas", inNamespaces, "quota"},
		{"", "Secret", "secrets", inNamespaces, ""},
		{"", "ServiceAccount", "serviceaccounts", inNamespaces, "sa"},
		{"", "Service", "services", inNamespaces, "svc"},
		{"admissionregistration.k8s.io", "MutatingAdmissionPolicy", "mutatingadmissionpolicies", clusterWide, ""},
		{"admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings", clusterWide, ""},
		{"admissionregistration.k8s.io", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", clusterWide, ""},
		{"admissionregistration.k8s.io", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", clusterWide, ""},
		{"admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", clusterWide, ""},
		{"admissionregistration.k8s.io", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", clusterWide, ""},
		{"apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions", clusterWide, "crd crds"},
		{"apiregistration.k8s.io", "APIService", "apiservices", clusterWide, ""},
		{"apps", "ControllerRevision", "controllerrevisions", inNamespaces, ""},
		{"apps", "DaemonSet", "daemonsets", inNamespaces, "ds"},
		{"apps", "Deployment", "deployments", inNamespaces, "deploy"},
		{"apps", "ReplicaSet", "replicasets", inNamespaces, "rs"},
		{"apps", "StatefulSet", "statefulsets", inNamespaces, "sts"},
		{"autoscaling", "HorizontalPodAutoscaler", "horizontalpodautoscalers", inNamespaces, "hpa"},
		{"batch", "CronJob", "cronjobs", inNamespaces, "cj"},
		{"batch", "Job", "jobs", inNamespaces, ""},
		{"certificates.k8s.io", "CertificateSigningRequest", "certificatesigningrequests", clusterWide, "csr"},
		{"coordination.k8s.io", "Lease", "leases", inNamespaces, ""},
		{"discovery.k8s.io", "EndpointSlice", "endpointslices", inNamespaces, ""},
		{"events.k8s.io", "Event", "events", inNamespaces, "ev"},
		{"flowcontrol.apiserver.k8s.io", "FlowSchema", "flowschemas", clusterWide, ""},
		{"flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration", "prioritylevelconfigurations", clusterWide, ""},
		{"networking.k8s.io", "IngressClass", "ingressclasses", clusterWide, ""},
		{"networking.k8s.io", "Ingress", "ingresses", inNamespaces, "ing"},
		{"networking.k8s.io", "IPAddress", "ipaddresses", clusterWide, "ip"},
		{"networking.k8s.io", "NetworkPolicy", "networkpolicies", inNamespaces, "netpol"},
		{"networking.k8s.io", "ServiceCIDR", "servicecidrs", clusterWide, ""},
		{"node.k8s.io", "RuntimeClass", "runtimeclasses", clusterWide, ""},
		{"policy", "PodDisruptionBudget", "poddisruptionbudgets", inNamespaces, "pdb"},
		{"rbac.authorization.k8s.io", "ClusterRoleBinding", "clusterrolebindings", clusterWide, ""},
		{"rbac.authorization.k8s.io", "ClusterRole", "clusterroles", clusterWide, ""},
		{"rbac.authorization.k8s.io", "RoleBinding", "rolebindings", inNamespaces, ""},
		{"rbac.authorization.k8s.io", "Role", "roles", inNamespaces, ""},
		{"resource.k8s.io", "DeviceClass", "deviceclasses", clusterWide, ""},
		{"resource.k8s.io", "ResourceClaim", "resourceclaims", inNamespaces, ""},
		{"resource.k8s.io", "ResourceClaimTemplate", "resourceclaimtemplates", inNamespaces, ""},
		{"resource.k8s.io", "ResourceSlice", "resourceslices", clusterWide, ""},
		{"scheduling.k8s.io", "PriorityClass", "priorityclasses", clusterWide, "pc"},
		{"storage.k8s.io", "CSIDriver", "csidrivers", clusterWide, ""},
		{"storage.k8s.io", "CSINode", "csinodes", clusterWide, ""},
		{"storage.k8s.io", "CSIStorageCapacity", "csistoragecapacities", inNamespaces, ""},
		{"storage.k8s.io", "StorageClass", "storageclasses", clusterWide, "sc"},
		{"storage.k8s.io", "VolumeAttachment", "volumeattachments", clusterWide, ""},
		{"storage.k8s.io", "VolumeAttributesClass", "volumeattributesclasses", clusterWide, "vac"},
	} {
		kinds[schema.GroupKind{Group: k.group, Kind: k.kind}] = resource{
			GroupVersionResource: schema.GroupVersionResource{Group: k.group, Resource: k.plural},
			APIResource: metav1.APIResource{
				Name: k.plural, SingularName: strings.ToLower(k.kind), Kind: k.kind, Namespaced: k.namespaced,
				ShortNames: strings.Fields(k.shortNames),
			},
		}
	}
	return kinds
}
