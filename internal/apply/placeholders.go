// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/hint"
)

// placeholder matches what programs such as envsubst and clusterctl replace in a manifest before it is applied.
var placeholder = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(?::?[=-][^}]*)?\}`)

// WithPlaceholders adds to the reason why an object was refused which placeholders it contains, if there are any.
func WithPlaceholders(object *unstructured.Unstructured, err error) error {
	if !isAboutContent(err) {
		return err
	}
	content, marshalErr := object.MarshalJSON()
	if marshalErr != nil {
		return err
	}
	var found []string
	for _, match := range placeholder.FindAllStringSubmatch(string(content), -1) {
		found = append(found, "${"+match[1]+"}")
	}
	if len(found) == 0 {
		return err
	}
	slices.Sort(found)
	return hint.With(err, fmt.Sprintf("%s contains %s; Opdock applies what kustomize builds and replaces no variables: "+
		"set the value in a kustomization, for example with a patch", title(object), strings.Join(slices.Compact(found), ", ")))
}

// isAboutContent reports whether the server refused what an object contains. A script may contain the same signs, so they explain no
// other failure. Server-side apply calls a wrong type an internal error.
func isAboutContent(err error) bool {
	status := apierrors.APIStatus(nil)
	return errors.As(err, &status) &&
		slices.Contains([]int32{http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusInternalServerError}, status.Status().Code)
}
