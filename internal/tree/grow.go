// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Branch is an object and the objects that belong to it.
type Branch struct {
	Object

	Children []*Branch
}

// Grow builds trees of objects by their owner references. The roots are objects of the fleet. Objects that belong to
// no root are left out.
func Grow(objects []Object) []*Branch {
	branches := make(map[types.UID]*Branch, len(objects))
	for _, o := range objects {
		branches[o.UID] = &Branch{Object: o}
	}
	var roots []*Branch
	for _, o := range objects {
		branch := branches[o.UID]
		if parent := parentOf(o, branches); parent != nil {
			parent.Children = append(parent.Children, branch)
		} else if o.Fleet {
			roots = append(roots, branch)
		}
	}
	sortBranches(roots)
	// Objects that own each other in a cycle belong to no root, so this recursion ends.
	for _, root := range roots {
		root.sort()
	}
	return roots
}

func parentOf(o Object, branches map[types.UID]*Branch) *Branch {
	for _, owner := range o.Owners {
		if parent, known := branches[owner]; known {
			return parent
		}
	}
	return nil
}

func (b *Branch) sort() {
	sortBranches(b.Children)
	for _, child := range b.Children {
		child.sort()
	}
}

// Kinds that events and trees treat specially.
const (
	podKind        = "Pod"
	replicaSetKind = "ReplicaSet"
)

// kindOrder puts the most important kinds first. Other kinds follow by name.
var kindOrder = []string{"KAPP", "AppService", "PodCluster", "Robot", "Collector", "Deployment", "ReplicaSet", "Pod", "Service", "Ingress", "HorizontalPodAutoscaler"}

func sortBranches(branches []*Branch) {
	rank := func(b *Branch) int {
		if index := slices.Index(kindOrder, b.Kind); index >= 0 {
			return index
		}
		return len(kindOrder)
	}
	slices.SortFunc(branches, func(a, b *Branch) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Kind, b.Kind),
			// A newer ReplicaSet is more interesting than an older one.
			compareAge(a, b), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
}

func compareAge(a, b *Branch) int {
	if a.Kind != replicaSetKind {
		return 0
	}
	return b.Created.Compare(a.Created)
}

// Visit calls see for the object of the branch and for all objects below it.
func (b *Branch) Visit(see func(Object)) {
	see(b.Object)
	for _, child := range b.Children {
		child.Visit(see)
	}
}

// Healthy reports whether no object in the branch is busy or bad.
func (b *Branch) Healthy() bool {
	healthy := true
	b.Visit(func(o Object) { healthy = healthy && o.State != Busy && o.State != Bad })
	return healthy
}
