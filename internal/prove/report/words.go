// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import "slices"

// word describes a family or a verdict to a reader.
type word struct {
	name  string // as in the report
	label string // as a heading
	about string // one sentence
}

// families are all families, in the order of the table.
var families = []word{
	{"undisturbed", "Undisturbed", "The operator runs without any fault."},
	{"crash", "Crash", "The operator is killed after a write, before or after the answer arrives, and restarted."},
	{"lost", "Lost answer", "A write reaches the API server, but its answer does not reach the operator."},
	{"refused", "Refused", "A write is refused: conflict, too many requests, server error, admission, quota or RBAC."},
	{"stale", "Stale", "One watch lags behind while everything else continues."},
	{"unobserved", "Unobserved", "The operator does not see changes that a later change reverts."},
	{"slow", "Slow", "Every answer is slow, or a watch breaks and the operator lists again."},
	{"drift", "Drift", "Another user edits, relabels, orphans or deletes what the operator made."},
	{"pods", "Pods", "Pods crash, fail to pull their image, never become ready or lose their node, and recover."},
	{"order", "Order", "Objects arrive late, in another order, compete for a child, or are recreated at once."},
	{"input", "Input", "Properties get values from the CRD's schema: valid, at their limits, or wrong; ConfigMaps and Secrets get other content; then all is reverted."},
	{"upgrade", "Upgrade", "The objects were made by an older version of the operator, and this version takes over."},
}

// verdicts are all verdicts, the worst first.
var verdicts = []word{
	{"panic", "Panic", "The operator panicked."},
	{"exit", "Exit", "The operator exited, although no fault ended it."},
	{"foreign", "Foreign object", "The operator changed or deleted an object that it does not control."},
	{"end-state", "End state", "The objects at the end differ from those of an undisturbed run."},
	{"update", "Update", "A changed spec leads to other objects than the same spec from the start, or does not reach the pods."},
	{"deletion", "Deletion", "The deletion of an object does not end."},
	{"leftovers", "Leftovers", "Objects of the operator remain after the custom resource is deleted."},
	{"counts", "Counts", "The operator created or deleted objects more often than in an undisturbed run."},
	{"status", "Status", "The status is wrong: observedGeneration or conditions contradict the objects."},
	{"loop", "Write loop", "The operator keeps writing the same object."},
	{"unsettled", "Unsettled", "The operator does not come to rest within the bound."},
	{"rest-writes", "Writes at rest", "The operator writes although there is nothing left to do."},
	{"admission", "Admission", "A wrong value is neither refused at admission nor reported in the status."},
	{"refused-rights", "Missing rights", "The API server refused a request that the operator needs: its role does not allow it."},
}

// severities are all severities, the worst first.
var severities = []string{"high", "medium", "low"}

// rank returns the position of a name among words. Unknown names, such as those of a newer opdock, come last.
func rank(words []word, name string) int {
	if at := slices.IndexFunc(words, func(w word) bool { return w.name == name }); at >= 0 {
		return at
	}
	return len(words)
}

// describe returns the word of a name. An unknown name stands for itself.
func describe(words []word, name string) word {
	if at := rank(words, name); at < len(words) {
		return words[at]
	}
	return word{name: name, label: name}
}

func severityRank(name string) int {
	if at := slices.Index(severities, name); at >= 0 {
		return at
	}
	return len(severities)
}

// Families returns the names of all families, in the order of the table.
func Families() []string { return names(families) }

// Verdicts returns the names of all verdicts, the worst first.
func Verdicts() []string { return names(verdicts) }

func names(words []word) []string {
	all := make([]string, 0, len(words))
	for _, w := range words {
		all = append(all, w.name)
	}
	return all
}
