// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apply is the one way in which Opdock brings objects to a cluster and takes them away again. All verbs that
// apply, prune, delete or wait use it:
//
//	plan       which objects, complete and in an order in which each finds what it needs; nothing is applied if it can be
//	           known beforehand that something cannot be
//	inventory  what a set of objects consists of, kept in a ConfigMap on the cluster, so a later session, another machine
//	           or a session after a kill still knows it; written before the first object is applied
//	apply      server-side apply, and what it changed
//	prune      deletes what the inventory has and the plan has not
//	await      waits by watching, with the rules of kstatus
//	delete     deletes a set in the reverse order, and waits until it is gone
//
// An inventory names each object instead of labelling it, as ApplySets (KEP-3659) do. The sets of opdock dev and of opdock
// deploy for one project have CRDs and roles in common, and an ApplySet label can name only one of them. A list of names
// also needs one read instead of a list request for each kind and namespace, and leaves the objects as the manifests
// have them.
package apply
