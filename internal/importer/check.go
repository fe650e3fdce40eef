// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

const (
	mebi = 1 << 20
	// etcdRequest is the size of a request that etcd accepts. The request also has the key of the object.
	etcdRequest = 3 * mebi / 2
	maxStored   = etcdRequest - 1024
)

// check returns an error that names the first object that the new cluster cannot have. One such object would keep the
// cluster from starting, or block all requests for its kind.
func check(all []Object) error {
	var first error
	failed := 0
	for _, object := range all {
		if err := checkObject(object); err != nil {
			failed++
			if first == nil {
				first = err
			}
		}
	}
	if failed > 1 {
		return fmt.Errorf("%w (and %d more that cannot be imported)", first, failed-1)
	}
	return first
}

func checkObject(o Object) error {
	title := o.Resource.String() + " " + strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
	if o.File != "" {
		title = o.File + ": " + title
	}
	if problems := nameProblems(o); len(problems) > 0 {
		return fmt.Errorf("%s: its name is not valid: %s", title, strings.Join(problems, "; "))
	}
	if namespace := o.GetNamespace(); namespace != "" {
		if problems := validation.ValidateNamespaceName(namespace, false); len(problems) > 0 {
			return fmt.Errorf("%s: its namespace is not valid: %s", title, strings.Join(problems, "; "))
		}
	}
	size, err := storedSize(o)
	if err != nil {
		return fmt.Errorf("%s: %w", title, err)
	}
	if size > maxStored {
		return fmt.Errorf("%s has %.2f MiB, and a cluster can only store objects of less than %.2f MiB", title, float64(size)/mebi, float64(etcdRequest)/mebi)
	}
	return nil
}

// nameProblems applies the rules of the API server where they are known. Other API servers have other rules: an image
// may be named "web:1". All names are part of a path.
func nameProblems(o Object) []string {
	switch {
	case o.Resource == namespaceResource || o.Resource == serviceResource:
		return validation.NameIsDNSLabel(o.GetName(), false)
	case o.anyName || o.Resource.Group == "rbac.authorization.k8s.io":
		return content.IsPathSegmentName(o.GetName())
	}
	return validation.NameIsDNSSubdomain(o.GetName(), false)
}

// storedSize returns how many bytes an object has in etcd. Built-in kinds are smaller there than as JSON.
func storedSize(o Object) (int, error) {
	data, err := json.Marshal(o.Object)
	if err != nil || len(data) <= maxStored {
		return len(data), err
	}
	typed, err := scheme.Scheme.New(o.GroupVersionKind())
	if err != nil {
		return len(data), nil //nolint:nilerr // a custom resource, which is stored as JSON
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, typed); err != nil {
		return len(data), nil //nolint:nilerr // the control plane reports it
	}
	if message, ok := typed.(interface{ Size() int }); ok {
		return message.Size(), nil
	}
	return len(data), nil
}
