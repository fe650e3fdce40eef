// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// pageSize is how many objects are asked for at a time.
const pageSize = 500

// resource is a kind that a cluster serves.
type resource struct {
	schema.GroupVersionResource
	metav1.APIResource
}

// FromCluster reads the objects of a cluster. It lists and does nothing else.
func FromCluster(ctx context.Context, config *rest.Config, o Options) ([]Object, *Report, error) {
	report := newReport()
	asking, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to the source: %w", err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to the source: %w", err)
	}
	resources, err := listable(asking, o, report)
	if err != nil {
		return nil, nil, err
	}
	var all []Object
	for _, r := range resources {
		read, err := list(ctx, client, r, o)
		switch {
		case apierrors.IsForbidden(err):
			report.Forbidden = append(report.Forbidden, r.GroupResource().String())
			continue
		case apierrors.IsMethodNotSupported(err) || apierrors.IsNotFound(err):
			continue
		case err != nil:
			return nil, nil, fmt.Errorf("listing %s: %w", r.GroupResource(), err)
		}
		all = append(all, read...)
		if o.Progress != nil && len(read) > 0 {
			o.Progress(r.GroupResource().String(), len(read), len(all))
		}
	}
	if len(report.Forbidden) > 0 && !o.SkipForbidden {
		return nil, report, &ForbiddenError{Resources: report.Forbidden}
	}
	return all, report, nil
}

// listable returns what the source serves and the options ask for. CRDs come with the kinds that they define.
func listable(asking discovery.DiscoveryInterface, o Options, report *Report) ([]resource, error) {
	lists, err := asking.ServerPreferredResources()
	var partial *discovery.ErrGroupDiscoveryFailed
	if errors.As(err, &partial) {
		for version := range partial.Groups {
			report.Unavailable = append(report.Unavailable, version.String())
		}
		slices.Sort(report.Unavailable)
	} else if err != nil {
		return nil, fmt.Errorf("asking the source which kinds it has: %w", err)
	}
	var found []resource
	matched := map[string]bool{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			one := resource{version.WithResource(r.Name), r}
			if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "list") || ofTheCluster.Has(one.GroupResource().String()) {
				continue
			}
			if one.wanted(o.Kinds, matched) {
				found = append(found, one)
			}
		}
	}
	for _, kind := range o.Kinds {
		if !matched[kind] {
			return nil, fmt.Errorf("the source has no kind %q that can be listed", kind)
		}
	}
	return found, nil
}

// wanted reports whether the kinds that were asked for include this one. Namespaces, nodes and CRDs always come along.
func (r resource) wanted(kinds []string, matched map[string]bool) bool {
	if len(kinds) == 0 {
		return true
	}
	always := []schema.GroupResource{namespaceResource, nodeResource, crdResource}
	wanted := slices.Contains(always, r.GroupResource())
	for _, kind := range kinds {
		lower := strings.ToLower(kind)
		names := append([]string{r.Name, r.SingularName, strings.ToLower(r.Kind), r.GroupResource().String()}, r.ShortNames...)
		if slices.Contains(names, lower) {
			matched[kind], wanted = true, true
		}
	}
	return wanted
}

// list reads all objects of a kind, page by page.
func list(ctx context.Context, client dynamic.Interface, r resource, o Options) ([]Object, error) {
	namespaces := []string{metav1.NamespaceAll}
	if r.Namespaced && len(o.Namespaces) > 0 {
		namespaces = o.Namespaces
	}
	var all []Object
	for _, namespace := range namespaces {
		options := metav1.ListOptions{Limit: pageSize}
		for {
			page, err := lister(client, r, namespace).List(ctx, options)
			if apierrors.IsResourceExpired(err) && options.Continue != "" {
				// It took longer than the source keeps old revisions. What has changed since is read as it is now.
				all, options.Continue = nil, ""
				options.Limit = 0
				continue
			}
			if err != nil {
				return nil, err
			}
			for i := range page.Items {
				all = append(all, Object{Resource: r.GroupResource(), Unstructured: &page.Items[i]})
			}
			if options.Continue = page.GetContinue(); options.Continue == "" {
				break
			}
		}
	}
	return all, nil
}

func lister(client dynamic.Interface, r resource, namespace string) interface {
	List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error)
} {
	if namespace == metav1.NamespaceAll {
		return client.Resource(r.GroupVersionResource)
	}
	return client.Resource(r.GroupVersionResource).Namespace(namespace)
}
