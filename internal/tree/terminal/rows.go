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

// row is one line of the tree before it is known how wide the window is.
type row struct {
	indent  string // lines from the parents
	state   tree.State
	kind    string
	name    string
	status  string
	detail  string
	created time.Time
	root    bool
	// message, if there is one, is the whole row: the reason of the object above.
	message string
}

const (
	// maxTroubled is how many pods that are not ready are shown one by one.
	maxTroubled = 4

	podKind        = "Pod"
	replicaSetKind = "ReplicaSet"
)

// shortKinds are kinds whose names take up too much room, as kubectl and its users call them.
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
	// trimmed shows nothing below what is healthy.
	trimmed
	// closed shows the root, and why it stands still if it does.
	closed
)

// rowsOf returns the lines of a root and of what is shown below it.
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

// contentsOf names what is below: "Deployment, Service, 3 pods".
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

// below are the rows of what belongs to a branch.
func below(b *tree.Branch, indent string, f fold) []row {
	var result []row
	items := itemsOf(b)
	if b.State == tree.Bad && b.Message != "" {
		// Why it stands still is what the user is looking for, so it gets the room that it needs.
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

// item is a child, or several in one row.
type item struct {
	row    row
	branch *tree.Branch // nil if there is nothing to show below the row
}

// itemsOf returns the children of a branch, its pods folded: those that are ready into one row, the others too if there are
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
	slices.SortStableFunc(troubled, func(x, y *tree.Branch) int { return int(y.State) - int(x.State) }) // the worst first
	for i, pod := range troubled {
		if left := troubled[i:]; i == maxTroubled && len(left) > 1 {
			result = append(result, item{row: podsRow(left, left[0].State, "more pods not ready")})
			break
		}
		result = append(result, itemOf(pod))
	}
	return result
}

// itemOf shows a healthy ReplicaSet in one row with its pods.
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
			r.created = pod.Created // the youngest tells since when there are so many
		}
	}
	return r
}
