// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Part is a part of a manager that needs rights besides those of its reconcilers.
type Part string

// The parts of a manager.
const (
	LeaderElection Part = "leader election"
	EventRecorder  Part = "event recorder"
	MetricsAuth    Part = "authentication of the metrics endpoint"
)

// managerRights are the rights of the parts of a manager. Recordings often show none of them: during development,
// leader election is off and metrics are not scraped, and only a repeated event is patched.
var managerRights = map[Right]Part{
	{Verb: "get", Group: "coordination.k8s.io", Resource: "leases"}:                        LeaderElection,
	{Verb: "create", Group: "coordination.k8s.io", Resource: "leases"}:                     LeaderElection,
	{Verb: "update", Group: "coordination.k8s.io", Resource: "leases"}:                     LeaderElection,
	{Verb: "create", Group: "", Resource: "events"}:                                        EventRecorder,
	{Verb: "patch", Group: "", Resource: "events"}:                                         EventRecorder,
	{Verb: "create", Group: "events.k8s.io", Resource: "events"}:                           EventRecorder,
	{Verb: "patch", Group: "events.k8s.io", Resource: "events"}:                            EventRecorder,
	{Verb: "create", Group: "authentication.k8s.io", Resource: "tokenreviews"}:             MetricsAuth,
	{Verb: "create", Group: "authorization.k8s.io", Resource: "subjectaccessreviews"}:      MetricsAuth,
	{Verb: "create", Group: "authorization.k8s.io", Resource: "localsubjectaccessreviews"}: MetricsAuth,
}

// why returns what a part needs its rights for.
func (p Part) why() string {
	switch p {
	case LeaderElection:
		return "leader election keeps a lease"
	case EventRecorder:
		return "the event recorder creates events, and patches those that repeat"
	case MetricsAuth:
		return "the metrics endpoint authenticates its clients with the API server"
	}
	return string(p)
}

// whyUse is why a right to use a policy for pods is kept.
const whyUse = "admission asks for it when a pod is created, and no request shows it"

// isUse reports whether a right is the one to use a policy for pods. The pods of the operator may need it, and it may need it to
// grant it to others.
func (r Right) isUse() bool {
	switch (schema.GroupResource{Group: r.Group, Resource: r.Resource}) {
	case schema.GroupResource{Group: "security.openshift.io", Resource: "securitycontextconstraints"},
		schema.GroupResource{Group: "policy", Resource: "podsecuritypolicies"},
		schema.GroupResource{Group: "extensions", Resource: "podsecuritypolicies"}:
		return r.Verb == "use"
	}
	return false
}

// everybodys returns why a right need not be granted: every authenticated user has it by the roles
// system:discovery, system:public-info-viewer and system:basic-user. It is empty for all other rights.
func everybodys(right Right) string {
	if right.URL != "" && right.Verb == "get" {
		for _, open := range []string{
			"/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", "/version", "/version/", "/healthz", "/livez", "/readyz",
		} {
			if (Right{Verb: "get", URL: open}).includes(right) {
				return "discovery is open to every user"
			}
		}
	}
	if right.Verb != "create" {
		return ""
	}
	switch (schema.GroupResource{Group: right.Group, Resource: right.Resource}) {
	case schema.GroupResource{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"},
		schema.GroupResource{Group: "authorization.k8s.io", Resource: "selfsubjectrulesreviews"},
		schema.GroupResource{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"}:
		return "every user may review its own access"
	}
	return ""
}

// clusterScoped are resources of Kubernetes that are in no namespace.
var clusterScoped = map[schema.GroupResource]bool{
	{Resource: "namespaces"}:        true,
	{Resource: "nodes"}:             true,
	{Resource: "persistentvolumes"}: true,
	{Group: "admissionregistration.k8s.io", Resource: "mutatingadmissionpolicies"}:         true,
	{Group: "admissionregistration.k8s.io", Resource: "mutatingadmissionpolicybindings"}:   true,
	{Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations"}:     true,
	{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicies"}:       true,
	{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicybindings"}: true,
	{Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations"}:   true,
	{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}:                 true,
	{Group: "apiregistration.k8s.io", Resource: "apiservices"}:                             true,
	{Group: "authentication.k8s.io", Resource: "tokenreviews"}:                             true,
	{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"}:                      true,
	{Group: "certificates.k8s.io", Resource: "certificatesigningrequests"}:                 true,
	{Group: "certificates.k8s.io", Resource: "clustertrustbundles"}:                        true,
	{Group: "certificates.k8s.io", Resource: "signers"}:                                    true,
	{Group: "flowcontrol.apiserver.k8s.io", Resource: "flowschemas"}:                       true,
	{Group: "flowcontrol.apiserver.k8s.io", Resource: "prioritylevelconfigurations"}:       true,
	{Group: "networking.k8s.io", Resource: "ingressclasses"}:                               true,
	{Group: "networking.k8s.io", Resource: "ipaddresses"}:                                  true,
	{Group: "networking.k8s.io", Resource: "servicecidrs"}:                                 true,
	{Group: "node.k8s.io", Resource: "runtimeclasses"}:                                     true,
	{Group: "policy", Resource: "podsecuritypolicies"}:                                     true,
	{Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"}:                  true,
	{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"}:                         true,
	{Group: "resource.k8s.io", Resource: "deviceclasses"}:                                  true,
	{Group: "resource.k8s.io", Resource: "devicetaintrules"}:                               true,
	{Group: "resource.k8s.io", Resource: "resourceslices"}:                                 true,
	{Group: "scheduling.k8s.io", Resource: "priorityclasses"}:                              true,
	{Group: "storage.k8s.io", Resource: "csidrivers"}:                                      true,
	{Group: "storage.k8s.io", Resource: "csinodes"}:                                        true,
	{Group: "storage.k8s.io", Resource: "storageclasses"}:                                  true,
	{Group: "storage.k8s.io", Resource: "volumeattachments"}:                               true,
	{Group: "storage.k8s.io", Resource: "volumeattributesclasses"}:                         true,
	{Group: "storagemigration.k8s.io", Resource: "storageversionmigrations"}:               true,
}

// installed are resources in no namespace whose objects come with an operator. Their names do not depend on what it
// reconciles, while those of a storage class, for example, may come from a custom resource.
var installed = map[schema.GroupResource]bool{
	{Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations"}:   true,
	{Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations"}: true,
	{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}:               true,
	{Group: "apiregistration.k8s.io", Resource: "apiservices"}:                           true,
}
