// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	kubegroupv1 "github.com/opdock/opdock/api/kubegroup/v1"
	kubegrouplisters "github.com/opdock/opdock/client/listers/kubegroup/v1"
)

// A lister reads from memory. In a program that memory is filled by an informer, whose method Lister gives the
// lister; a test can fill it by hand.
func Example() {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, cluster := range []*kubegroupv1.PodCluster{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "queue", Labels: map[string]string{"tier": "data"}}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cache", Labels: map[string]string{"tier": "data"}}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{"tier": "front"}}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "blog", Name: "cache", Labels: map[string]string{"tier": "data"}}},
	} {
		if err := indexer.Add(cluster); err != nil {
			fmt.Println(err)
			return
		}
	}
	lister := kubegrouplisters.NewPodClusterLister(indexer)

	data, err := lister.PodClusters("shop").List(labels.SelectorFromSet(labels.Set{"tier": "data"}))
	if err != nil {
		fmt.Println(err)
		return
	}
	// They come in no order.
	names := make([]string, 0, len(data))
	for _, cluster := range data {
		names = append(names, cluster.Name)
	}
	slices.Sort(names)
	fmt.Println(names)

	_, err = lister.PodClusters("blog").Get("web")
	fmt.Println("web is not in blog:", apierrors.IsNotFound(err))

	// Output:
	// [cache queue]
	// web is not in blog: true
}
