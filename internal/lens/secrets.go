// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// quoting matches the end of what can be kept of a message. What follows is the value of a field, or what a webhook or
// an admission policy says, which may be about values.
var quoting = regexp.MustCompile(`: expected \w+, got|denied (the )?request:?`)

const messageHidden = "(the rest is hidden: it may contain values of the Secret)"

// message returns the message of a refusal. The API server quotes values that it does not accept, so a message about the
// content of a Secret is replaced by its reason and the fields that it is about.
func message(r *Request, text string, causes []any) string {
	if r.Resource.Group != "" || r.Resource.Resource != "secrets" || text == "" {
		return text
	}
	if end := quoting.FindStringIndex(text); end != nil {
		return text[:end[1]] + " " + messageHidden
	}
	if sendsNoObject(r.Verb) || quotesNoObject(r.Status) {
		return text
	}
	parts := []string{cmp.Or(r.Reason, http.StatusText(r.Status))}
	if fields := fieldsOf(causes); len(fields) > 0 {
		parts = append(parts, strings.Join(fields, ", "))
	}
	return strings.Join(parts, ": ") + " " + messageHidden
}

func sendsNoObject(verb string) bool {
	return slices.Contains([]string{"get", "list", "watch", "delete", "deletecollection"}, verb)
}

// quotesNoObject reports whether a status is about the request, its sender or the server, and not about values.
func quotesNoObject(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusConflict,
		http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// fieldsOf returns the fields that the causes of a refusal name.
func fieldsOf(causes []any) (fields []string) {
	for _, one := range causes {
		cause, _ := one.(map[string]any)
		if field, _, _ := unstructured.NestedString(cause, "field"); field != "" && !slices.Contains(fields, field) {
			fields = append(fields, field)
		}
	}
	return fields
}
