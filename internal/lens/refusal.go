// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var (
	// unauthorized is how authorizers refuse a request, whichever they are: the API server words it.
	unauthorized = regexp.MustCompile(`User ".*" cannot \S+ (resource|path) "`)
	// lacking is how API servers refuse the body of a write for lack of a right.
	lacking = []string{
		"is attempting to grant RBAC permissions not currently held", // by a role or binding
		"must have cluster-admin privileges to use the aggregationRule",
		"cannot set an ownerRef on a resource you can't delete",
		"cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on",
		"user not permitted to ", // approve or sign a certificate
	}
)

// IsDenial reports whether a webhook or an admission policy has written a message. Both choose the status code and the rest
// of the text.
func IsDenial(message string) bool {
	return strings.Contains(message, "denied the request") || strings.Contains(message, "denied request")
}

// IsRejected reports whether the API server, or a webhook or an admission policy that it asked, does not accept a write as it is.
func IsRejected(err error) bool {
	return err != nil && (apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || IsDenial(err.Error()))
}

// LacksRight reports whether a request was refused for lack of a right. Admission refuses writes with the same status: in a
// namespace that is being deleted, beyond a quota, or by a policy. Such a request had the right to be sent, and no other right helps.
func (r *Request) LacksRight() bool {
	if r.Status != http.StatusForbidden {
		return false
	}
	if r.Resource.Subresource == "proxy" {
		return r.Reason == string(metav1.StatusReasonForbidden) // see readRefusal
	}
	switch r.Verb {
	case "get", "list", "watch":
		if !isConversation(r.Resource.Subresource) {
			return true // there is no admission
		}
	}
	if r.Message == "" || IsDenial(r.Message) {
		return r.Message == "" // nothing says then that it is something else
	}
	return unauthorized.MatchString(r.Message) || r.lacksImplied()
}

// lacksImplied reports whether a write was refused for lack of a right that its body needs. The right to send it was there.
func (r *Request) lacksImplied() bool {
	return r.Status == http.StatusForbidden && !IsDenial(r.Message) && slices.ContainsFunc(lacking, func(text string) bool { return strings.Contains(r.Message, text) })
}

// readRefusal reads the answer of the API server to a conversation that it refuses. What comes through a proxy, and does not name the
// right that is lacking, comes from the application, and is not recorded.
func (r *Request) readRefusal(data []byte, x *exchange) {
	if r.Status != http.StatusForbidden || len(data) == 0 {
		return
	}
	as, _ := encodingOf(x.contentType)
	plain, err := inflate(data, x.compression)
	if err != nil {
		return
	}
	decoded, err := decode(plain, as)
	if err != nil || kindOf(decoded) != "Status" {
		return
	}
	answer := asUnstructured(decoded)
	reason, _, _ := unstructured.NestedString(answer.Object, "reason")
	text, _, _ := unstructured.NestedString(answer.Object, "message")
	isAbout := strings.Contains(text, fmt.Sprintf("resource %q", r.Resource.Resource+"/"+r.Resource.Subresource)) || strings.Contains(text, "cannot impersonate")
	if r.Resource.Subresource != "proxy" || reason == string(metav1.StatusReasonForbidden) && unauthorized.MatchString(text) && isAbout {
		r.Reason, r.Message = reason, text
	}
}
