// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package experiment repeats an experiment that a kubebuilder beginner, the learner, once made by hand: change a
// Deployment in ten ways, and count how often each change calls a reconciler. It makes the changes on a real control
// plane, for the reconciler that explains the learner's numbers and for the fleet's AppService, and explains each
// event.
//
//   - changes.go lists the changes, and document.go the numbers in the learner's notes.
//   - subject.go holds the objects to change: a Deployment and an AppService, with any number of containers per pod.
//   - naive.go and witness.go are controllers that are recorded beside the fleet's.
//   - trace.go builds events, reconciles and writes from the records of package why. explain.go explains them.
//   - run.go and scenario.go make the changes. rest.go waits until a change has no more effects.
//   - possible.go computes how many events a change can trigger.
//   - table.go, page.go and details.go show the result.
package experiment
