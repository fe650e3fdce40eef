// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/opdock/opdock/internal/tree"
)

// row is one line of the tree, before its width is known.
type row struct {
	indent  string // connecting lines
	state   tree.State
	kind    string
	name    string
	status  string
	detail  string
	created time.Time
	root    bool
	// message, if set, replaces all other fields. It is the reason of the object above.
	message string
}

const (
	// maxTroubled is how many pods that are not ready have a row each.
	maxTroubled = 4

	podKind        = "Pod"
	replicaSetKind = "ReplicaSet"
)

// shortKinds are short names, as kubectl has them, for kinds with long names.
var shortKinds = map[string]string{"HorizontalPodAutoscaler": "HPA", "PodDisruptionBudget": "PDB"}

func kindName(kind string) string {
	if short, ok := shortKinds[kind]; ok {
		return short
	}
	return kind
}

// fold is how much of a tree is shown.
type fold int

const (
	// open shows all of it.
	open fold = iota
	// trimmed hides the objects below healthy ones.
	trimmed
	// closed shows only the root, and its message if it is bad.
	closed
)

// rowsOf returns the rows of a root and of the visible objects below it.
func rowsOf(b *tree.Branch, namespace string, f fold) []row {
	root := rowOf(b, "")
	root.root = true
	if b.Namespace != namespace {
		root.name = b.Namespace + "/" + b.Name
	}
	if f != closed {
		return append([]row{root}, below(b, "", f)...)
	}
	if contents := contentsOf(b); b.State == tree.Good && b.Healthy() && contents != "" {
		root.detail = contents
	}
	rows := []row{root}
	if b.State == tree.Bad && b.Message != "" {
		rows = append(rows, row{indent: "   ", state: b.State, message: b.Message})
	}
	return rows
}

// contentsOf summarises the objects below a branch: "Deployment, Service, 3 pods".
func contentsOf(b *tree.Branch) string {
	var kinds []string
	count := map[string]int{}
	for _, child := range b.Children {
		child.Visit(func(o tree.Object) {
			if count[o.Kind] == 0 && o.Kind != podKind && o.Kind != replicaSetKind && !o.Spent {
				kinds = append(kinds, o.Kind)
			}
			count[o.Kind]++
		})
	}
	for i, kind := range kinds {
		kinds[i] = kindName(kind)
		if n := count[kind]; n > 1 {
			kinds[i] = fmt.Sprintf("%d %ss", n, kindName(kind))
		}
	}
	if n := count[podKind]; n > 0 {
		kinds = append(kinds, tree.Plural(n, "pod"))
	}
	return strings.Join(kinds, ", ")
}

func rowOf(b *tree.Branch, indent string) row {
	r := row{
		indent: indent, state: b.State, kind: kindName(b.Kind), name: b.Name, status: b.Status, detail: b.Detail, created: b.Created,
	}
	if b.Fleet && b.Reason != "" {
		r.status += " " + b.Reason
	}
	if b.Message != "" {
		r.detail = b.Message
		if b.State == tree.Bad {
			r.detail = "" // has its own row
		}
	}
	return r
}

// below returns the rows of the objects below a branch.
func below(b *tree.Branch, indent string, f fold) []row {
	var result []row
	items := itemsOf(b)
	if b.State == tree.Bad && b.Message != "" {
		// The user looks for this message, so it gets as much room as it needs.
		bar := "│  "
		if len(items) == 0 {
			bar = "   "
		}
		result = append(result, row{indent: indent + bar, state: b.State, message: b.Message})
	}
	for i, item := range items {
		branch, beam := "├─ ", "│  "
		if i == len(items)-1 {
			branch, beam = "└─ ", "   "
		}
		item.row.indent = indent + branch
		result = append(result, item.row)
		if item.branch == nil {
			continue
		}
		if f == trimmed && item.branch.Healthy() {
			if contents := contentsOf(item.branch); contents != "" {
				result[len(result)-1].detail = contents
			}
			continue
		}
		result = append(result, below(item.branch, indent+beam, f)...)
	}
	return result
}

// item is a row for one child or for several.
type item struct {
	row    row
	branch *tree.Branch // nil if there is nothing to show below the row
}

// itemsOf returns the children of a branch. Ready pods share one row, and so do pods that are not ready if there are
// many of them.
func itemsOf(b *tree.Branch) []item {
	var result []item
	var ready, troubled []*tree.Branch
	for _, child := range b.Children {
		switch {
		case child.Spent:
		case child.Kind != podKind:
			result = append(result, itemOf(child))
		case child.State == tree.Good || child.State == tree.Plain:
			ready = append(ready, child)
		default:
			troubled = append(troubled, child)
		}
	}
	if len(ready) == 1 {
		result = append(result, itemOf(ready[0]))
	} else if len(ready) > 1 {
		result = append(result, item{row: podsRow(ready, tree.Good, "pods ready")})
	}
	slices.SortStableFunc(troubled, func(x, y *tree.Branch) int { return int(y.State) - int(x.State) }) // worst first
	for i, pod := range troubled {
		if left := troubled[i:]; i == maxTroubled && len(left) > 1 {
			result = append(result, item{row: podsRow(left, left[0].State, "more pods not ready")})
			break
		}
		result = append(result, itemOf(pod))
	}
	return result
}

// itemOf returns the item of a child. A healthy ReplicaSet and its pods share one row.
func itemOf(b *tree.Branch) item {
	r := rowOf(b, "")
	if b.Kind == replicaSetKind && b.State == tree.Good && len(b.Children) > 0 && b.Healthy() {
		r.status = tree.Plural(len(b.Children), "pod") + " ready"
		return item{row: r}
	}
	return item{row: r, branch: b}
}

func podsRow(pods []*tree.Branch, state tree.State, what string) row {
	r := row{state: state, name: fmt.Sprintf("%d %s", len(pods), what)}
	r.detail = pods[0].Name + " … " + pods[len(pods)-1].Name
	for _, pod := range pods {
		if r.created.Before(pod.Created) {
			r.created = pod.Created // the pods have been complete since the youngest was created
		}
	}
	return r
}
