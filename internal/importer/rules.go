// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/uuid"
)

var (
	nodeResource      = schema.GroupResource{Resource: "nodes"}
	namespaceResource = schema.GroupResource{Resource: "namespaces"}
	serviceResource   = schema.GroupResource{Resource: "services"}
	podResource       = schema.GroupResource{Resource: "pods"}
	secretResource    = schema.GroupResource{Resource: "secrets"}
	volumeResource    = schema.GroupResource{Resource: "persistentvolumes"}
	crdResource       = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
)

// ofTheCluster are internal kinds of the source: the new cluster has its own, or recreates them.
var ofTheCluster = sets.New(
	"events", "events.events.k8s.io", "leases.coordination.k8s.io", "endpoints", "endpointslices.discovery.k8s.io",
	"componentstatuses", "csinodes.storage.k8s.io", "csidrivers.storage.k8s.io", "csistoragecapacities.storage.k8s.io",
	"volumeattachments.storage.k8s.io", "certificatesigningrequests.certificates.k8s.io", "apiservices.apiregistration.k8s.io",
	"flowschemas.flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
	"ipaddresses.networking.k8s.io", "servicecidrs.networking.k8s.io", "nodes.metrics.k8s.io", "pods.metrics.k8s.io",
	"storageversions.internal.apiserver.k8s.io", "resourceslices.resource.k8s.io", "devicetaintrules.resource.k8s.io",
)

func isInternal(resource schema.GroupResource) bool {
	return ofTheCluster.Has(resource.String()) || strings.HasSuffix(resource.Group, "metrics.k8s.io")
}

// systemNamespaces belong to the source's control plane.
var systemNamespaces = sets.New("kube-system", "kube-public", "kube-node-lease")

// sharedWithNamespaces are kinds without a namespace that objects in namespaces refer to by name.
var sharedWithNamespaces = sets.New(
	"storageclasses.storage.k8s.io", "priorityclasses.scheduling.k8s.io", "ingressclasses.networking.k8s.io",
	"runtimeclasses.node.k8s.io", crdResource.String(), nodeResource.String(), volumeResource.String(),
)

// Prepare selects the objects to import, changes those that must not be imported unchanged, and adds both to the
// report. It fails if an object cannot be stored.
func Prepare(read []Object, o Options, report *Report) ([]Object, error) {
	var kept []Object
	for _, object := range read {
		if reason := leaveOut(object, o); reason != "" {
			report.LeftOut[reason]++
			continue
		}
		kept = append(kept, object)
	}
	kept = onlyUsed(kept, o)
	for _, object := range kept {
		clean(object, o, report)
	}
	kept = append(kept, missingNodes(kept, report)...)
	kept = append(kept, missingNamespaces(kept)...)
	dropAbsentOwners(kept, report)
	report.Objects = len(kept)
	return kept, check(kept)
}

// leaveOut returns why an object is not imported; empty if it is.
func leaveOut(o Object, options Options) string {
	resource, namespace, name := o.Resource.String(), o.GetNamespace(), o.GetName()
	if o.Resource == namespaceResource {
		namespace = name
	}
	switch {
	case isInternal(o.Resource):
		return "they belong to the machinery of the source"
	case namespace != "" && len(options.Namespaces) > 0 && !slices.Contains(options.Namespaces, namespace):
		return "they are in other namespaces"
	case namespace == "" && len(options.Namespaces) > 0 && !sharedWithNamespaces.Has(resource):
		return "they belong to no namespace"
	case namespace != "" && len(options.Namespaces) == 0 && systemNamespaces.Has(namespace):
		return "they are in namespaces of the system"
	case o.GetLabels()["kubernetes.io/bootstrapping"] == "rbac-defaults",
		o.Resource.Group == "scheduling.k8s.io" && strings.HasPrefix(name, "system-"),
		o.Resource.Resource == "configmaps" && name == "kube-root-ca.crt",
		o.Resource.Resource == "services" && namespace == "default" && name == "kubernetes":
		return "every cluster has its own"
	case o.Resource == secretResource && stringAt(o, "type") == "kubernetes.io/service-account-token":
		return "they are tokens that only the source accepts"
	case o.Resource == podResource && o.GetAnnotations()["kubernetes.io/config.mirror"] != "":
		return "they are static pods of a node"
	case strings.HasSuffix(o.Resource.Resource, "webhookconfigurations") && callsOutside(o):
		return "they are webhooks that call a server outside of this machine"
	}
	return ""
}

// callsOutside reports whether a webhook configuration has a webhook that is not on this machine.
func callsOutside(o Object) bool {
	webhooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
	return slices.ContainsFunc(webhooks, func(webhook any) bool {
		address, found, _ := unstructured.NestedString(asMap(webhook), "clientConfig", "url")
		return !found || !onThisMachine(address)
	})
}

func onThisMachine(address string) bool {
	parsed, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(parsed.Hostname())
	return parsed.Hostname() == "localhost" || (ip != nil && ip.IsLoopback())
}

// onlyUsed reduces the volumes to those that imported claims are bound to, if only some namespaces are imported.
func onlyUsed(all []Object, o Options) []Object {
	if len(o.Namespaces) == 0 {
		return all
	}
	volumes, nodes := sets.New[string](), sets.New[string]()
	for _, object := range all {
		if object.Resource.Resource == "persistentvolumeclaims" {
			volumes.Insert(stringAt(object, "spec", "volumeName"))
		}
		if object.Resource == podResource {
			nodes.Insert(stringAt(object, "spec", "nodeName"))
		}
	}
	return slices.DeleteFunc(all, func(object Object) bool {
		return (object.Resource == volumeResource && !volumes.Has(object.GetName())) ||
			(object.Resource == nodeResource && !nodes.Has(object.GetName()))
	})
}

// clean changes fields that must not be imported unchanged.
func clean(o Object, options Options, report *Report) {
	o.SetResourceVersion("")
	if o.GetUID() == "" { // a manifest rather than an object
		o.SetUID(uuid.NewUUID())
		if o.Resource == namespaceResource {
			completeNamespace(o)
		}
	}
	if created := o.GetCreationTimestamp(); created.IsZero() {
		o.SetCreationTimestamp(metav1.NewTime(time.Now().Truncate(time.Second)))
	}
	switch o.Resource {
	case secretResource:
		if !options.WithSecrets {
			redact(o)
			report.Changed["Secrets have placeholders instead of their contents"]++
		}
	case crdResource:
		strategy := stringAt(o, "spec", "conversion", "strategy")
		address, hasURL, _ := unstructured.NestedString(o.Object, "spec", "conversion", "webhook", "clientConfig", "url")
		if strategy == "Webhook" && (!hasURL || !onThisMachine(address)) {
			_ = unstructured.SetNestedMap(o.Object, map[string]any{"strategy": "None"}, "spec", "conversion")
			report.Changed["CRDs have no conversion webhook"]++
		}
	}
}

// lastApplied holds a copy of the whole object, the contents of a Secret included.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// redact replaces the contents of a Secret by something of the same form, as the API server checks the form of some.
func redact(o Object) {
	data, _, _ := unstructured.NestedMap(o.Object, "data")
	for key := range data {
		placeholder := "redacted"
		switch key {
		case ".dockerconfigjson":
			placeholder = `{"auths":{}}`
		case ".dockercfg":
			placeholder = `{}`
		}
		data[key] = base64.StdEncoding.EncodeToString([]byte(placeholder))
	}
	if data != nil {
		_ = unstructured.SetNestedMap(o.Object, data, "data")
	}
	unstructured.RemoveNestedField(o.Object, "stringData")
	annotations := o.GetAnnotations()
	if _, found := annotations[lastApplied]; found {
		delete(annotations, lastApplied)
		o.SetAnnotations(annotations)
	}
}

// missingNodes creates nodes for pods whose node was not read: pods of missing nodes are deleted.
func missingNodes(all []Object, report *Report) []Object {
	known, wanted := sets.New[string](), map[string]Object{}
	for _, object := range all {
		switch object.Resource {
		case nodeResource:
			known.Insert(object.GetName())
		case podResource:
			if name := stringAt(object, "spec", "nodeName"); name != "" {
				wanted[name] = object
			}
		}
	}
	var made []Object
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if !known.Has(name) {
			report.Changed["nodes are created because pods name them"]++
			made = append(made, newObject(nodeResource, "Node", name, wanted[name]))
		}
	}
	return made
}

// missingNamespaces creates the namespaces of objects that were not read.
func missingNamespaces(all []Object) []Object {
	known, wanted := sets.New[string]("default"), map[string]Object{}
	for _, object := range all {
		if object.Resource == namespaceResource {
			known.Insert(object.GetName())
		} else if namespace := object.GetNamespace(); namespace != "" {
			wanted[namespace] = object
		}
	}
	var made []Object
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if !known.Has(name) {
			namespace := newObject(namespaceResource, "Namespace", name, wanted[name])
			completeNamespace(namespace)
			made = append(made, namespace)
		}
	}
	return made
}

// completeNamespace sets what the API server sets in a new namespace. Without the finalizer, the objects in a namespace
// would outlive it.
func completeNamespace(o Object) {
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels["kubernetes.io/metadata.name"] = o.GetName()
	o.SetLabels(labels)
	_ = unstructured.SetNestedStringSlice(o.Object, []string{"kubernetes"}, "spec", "finalizers")
	_ = unstructured.SetNestedField(o.Object, "Active", "status", "phase")
}

// newObject returns an object that another one needs.
func newObject(resource schema.GroupResource, kind, name string, user Object) Object {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
	object.SetName(name)
	object.SetUID(uuid.NewUUID())
	object.SetCreationTimestamp(metav1.NewTime(time.Now().Truncate(time.Second)))
	return Object{Resource: resource, Unstructured: object, File: user.File}
}

// dropAbsentOwners removes references to owners that are not imported: the garbage collector would remove the object.
func dropAbsentOwners(all []Object, report *Report) {
	present := sets.New[types.UID]()
	for _, object := range all {
		present.Insert(object.GetUID())
	}
	for _, object := range all {
		owners := object.GetOwnerReferences()
		kept := slices.DeleteFunc(slices.Clone(owners), func(owner metav1.OwnerReference) bool { return !present.Has(owner.UID) })
		if len(kept) < len(owners) {
			object.SetOwnerReferences(kept)
			report.Changed["objects have no owner, because it is not imported"]++
		}
	}
}

func stringAt(o Object, path ...string) string {
	value, _, _ := unstructured.NestedString(o.Object, path...)
	return value
}

func asMap(value any) map[string]any {
	asserted, _ := value.(map[string]any)
	return asserted
}

// Lines returns the reasons and changes of a report, sorted, each with its number.
func Lines(counts map[string]int) []string {
	var lines []string
	for text, count := range counts {
		lines = append(lines, fmt.Sprintf("%d: %s", count, text))
	}
	slices.Sort(lines)
	return lines
}
