// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// ReconcileHeader names the reconcile of a request. It is not forwarded.
const ReconcileHeader = "X-Opdock-Reconcile"

// SourceHeader holds the lines of the operator that sent a write. It is not forwarded.
const SourceHeader = "X-Opdock-Source"

// requestInfo reads addresses as the API server does.
var requestInfo = apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// describe returns the description of a request from its URL and headers.
func describe(r *http.Request) Request {
	query := r.URL.Query()
	d := Request{
		UserAgent: r.UserAgent(), FieldManager: query.Get("fieldManager"), As: r.Header.Get(authenticationv1.ImpersonateUserHeader),
		DryRun: slices.Contains(query["dryRun"], metav1.DryRunAll), Implies: impersonated(r.Header),
	}
	d.Reconcile, _ = strconv.ParseUint(r.Header.Get(ReconcileHeader), 10, 64) // anything else is none
	info, err := requestInfo.NewRequestInfo(r)
	if err != nil || !info.IsResourceRequest {
		d.Verb, d.Path = strings.ToLower(r.Method), r.URL.Path
		return d
	}
	d.Verb = info.Verb
	d.Resource = Resource{
		Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource, Subresource: info.Subresource,
		Namespace: info.Namespace, Name: info.Name,
	}
	if d.Resource.Resource == "namespaces" && d.Resource.Group == "" {
		d.Resource.Namespace = "" // RequestInfo repeats the name there
	}
	if d.Verb == "patch" && isApply(r.Header) {
		d.Verb = "apply"
	}
	if d.IsWrite() {
		d.Source = sourcesOf(r.Header.Get(SourceHeader))
	}
	switch d.Verb {
	case "create", "update", "patch":
		d.FieldManager = cmp.Or(d.FieldManager, managerOfAgent(d.UserAgent))
	case "list", "watch", "get", "deletecollection":
		d.Query = queryOf(query)
		if d.Verb != "get" && d.Query.FieldSelector != "" {
			d.Resource.Name = "" // RequestInfo reads it from metadata.name=…, which is in Query
		}
	}
	return d
}

// impersonated returns the rights to impersonate what else a request says of the user that it impersonates, as the API
// server checks them. The right to impersonate the user itself follows from Request.As.
func impersonated(header http.Header) (rights []Implied) {
	if header.Get(authenticationv1.ImpersonateUserHeader) == "" {
		return nil // the API server refuses it
	}
	need := func(what Resource, names []string, because string) {
		for _, name := range names {
			what.Name = name
			rights = append(rights, Implied{Verb: "impersonate", Resource: what, Because: because})
		}
	}
	need(Resource{Version: "v1", Resource: "groups"}, header.Values(authenticationv1.ImpersonateGroupHeader), "requests were sent as a member of another group")
	version := authenticationv1.SchemeGroupVersion
	need(Resource{Group: version.Group, Version: version.Version, Resource: "uids"}, header.Values(authenticationv1.ImpersonateUIDHeader), "requests were sent with the UID of another user")
	for _, name := range slices.Sorted(maps.Keys(header)) {
		encoded, ok := strings.CutPrefix(name, authenticationv1.ImpersonateUserExtraHeaderPrefix)
		if !ok {
			continue
		}
		key := strings.ToLower(encoded)
		if plain, err := url.PathUnescape(key); err == nil {
			key = plain
		}
		extra := Resource{Group: version.Group, Version: version.Version, Resource: "userextras", Subresource: key}
		need(extra, header[name], "requests were sent with extra fields of another user")
	}
	return rights
}

// maxSource is the longest header with lines that is read.
const maxSource = 4 << 10

// sourcesOf reads the lines that sent a write from the header of a hook.
func sourcesOf(header string) (lines []string) {
	if header == "" || len(header) > maxSource {
		return nil
	}
	for one := range strings.SplitSeq(header, ",") {
		if line, err := url.QueryUnescape(one); err == nil && line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

func queryOf(query map[string][]string) *Query {
	first := func(name string) string {
		if values := query[name]; len(values) > 0 {
			return values[0]
		}
		return ""
	}
	isSet := func(name string) bool { set, _ := strconv.ParseBool(first(name)); return set }
	q := Query{
		LabelSelector: first("labelSelector"), FieldSelector: first("fieldSelector"),
		ResourceVersion: first("resourceVersion"), Match: first("resourceVersionMatch"), Continue: first("continue") != "",
		InitialEvents: isSet("sendInitialEvents"), Bookmarks: isSet("allowWatchBookmarks"),
	}
	q.Limit, _ = strconv.ParseInt(first("limit"), 10, 64)
	return &q
}

func isApply(header http.Header) bool {
	return strings.HasPrefix(header.Get("Content-Type"), "application/apply-patch+")
}

// managerOfAgent is the name under which the API server records a write that names no field manager.
func managerOfAgent(agent string) string {
	name, _, _ := strings.Cut(agent, "/")
	return name
}

// isReview reports whether a resource is a review: creating it stores nothing.
func isReview(r Resource) bool {
	return r.Group == authenticationv1.GroupName || r.Group == authorizationv1.GroupName ||
		r.Resource == "serviceaccounts" && r.Subresource == "token"
}

// isConversation reports whether a subresource is a connection to a container and not a part of an object.
func isConversation(subresource string) bool {
	switch subresource {
	case "proxy", "exec", "attach", "portforward":
		return true
	}
	return false
}

// answersObject reports whether the answer to a request is an object, a list or a Status. Others are of no concern to
// the lens. A conversation may be refused by the API server, with a Status, or by the application, with anything.
func (r *Request) answersObject() bool {
	if isConversation(r.Resource.Subresource) {
		return r.Status == http.StatusForbidden
	}
	return r.Status >= http.StatusBadRequest || r.Path == "" && r.Resource.Subresource != "log"
}
