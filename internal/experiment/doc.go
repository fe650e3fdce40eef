// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package experiment repeats what a learner of kubebuilder once did by hand: change a Deployment in ten ways, and count how
// often that calls a reconciler. It does so on a real control plane, for the reconciler that explains the learner's numbers
// and for the fleet's AppService, and says of each event what it was.
//
//   - changes.go and document.go are what is changed, and what the learner counted.
//   - subject.go is what is changed: a Deployment, or an AppService. Both have pods of as many containers as are asked for.
//   - naive.go and witness.go are the controllers that are recorded beside the fleet's.
//   - trace.go makes events, reconciles and writes of what package why has recorded; explain.go puts them into words.
//   - run.go and scenario.go make the changes, and rest.go waits until all is quiet again.
//   - possible.go says how many events a change could have been.
//   - table.go, page.go and details.go show the result.
package experiment
