// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apply applies objects to a cluster and deletes them. All verbs that apply, prune, delete or wait use it:
//
//	plan       the complete objects, sorted by dependency; nothing is applied if a failure is certain in advance
//	inventory  the members of a set, in a ConfigMap on the cluster: a later session or another machine still knows them,
//	           even after a kill, because it is written before the first object is applied
//	apply      server-side apply, and what it changed
//	prune      deletes objects that are in the inventory and not in the plan
//	await      waits by watching, with the rules of kstatus
//	delete     deletes a set in reverse order, and waits until it is gone
//
// An inventory lists the names of its objects. ApplySets (KEP-3659) label the objects instead, which does not work here:
// the sets of opdock dev and of opdock deploy for one project share CRDs and roles, and an ApplySet label can name only
// one set. A list of names also needs one read instead of a list request for each kind and namespace, and does not change
// the objects.
package apply
