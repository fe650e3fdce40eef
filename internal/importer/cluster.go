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
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// pageSize is how many objects are asked for at a time.
const pageSize = 500

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
	resources, err := listable(ctx, asking, o, report)
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
	return all, report, checkRead(all, o, report)
}

// checkRead returns an error if the source does not have a namespace that was asked for. Without the right to list
// namespaces, objects must prove that a namespace exists.
func checkRead(all []Object, o Options, report *Report) error {
	known := sets.New[string]()
	for _, object := range all {
		known.Insert(namespaceOf(object, object.GetNamespace()))
	}
	if !slices.Contains(report.Forbidden, namespaceResource.String()) {
		return checkNamespaces(o.Namespaces, known)
	}
	for _, namespace := range o.Namespaces {
		if !known.Has(namespace) {
			return fmt.Errorf("nothing in namespace %q can be read: it does not exist, or has no objects that you may list", namespace)
		}
	}
	return nil
}

// listable returns what the source serves and the options ask for. CRDs come with the kinds that they define.
func listable(ctx context.Context, asking *discovery.DiscoveryClient, o Options, report *Report) ([]resource, error) {
	lists, err := asking.ServerPreferredResourcesWithContext(ctx)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("asking the source which kinds it has: %w", context.Cause(ctx))
	}
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
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			if !strings.Contains(r.Name, "/") && slices.Contains(r.Verbs, "list") {
				found = append(found, resource{GroupVersionResource: version.WithResource(r.Name), APIResource: r})
			}
		}
	}
	if err := checkKinds(o.Kinds, found); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(r resource) bool { return isInternal(r.GroupResource()) || !r.wanted(o.Kinds) }), nil
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
				all = append(all, Object{Resource: r.GroupResource(), Unstructured: &page.Items[i], anyName: true})
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
