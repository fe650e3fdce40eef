// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import "testing"

// Moments are found again by names, which are partly random for some objects.
func TestNamesOfMoments(t *testing.T) {
	at := func(resource, name string) write {
		return write{Moment: Moment{Verb: "create", Resource: resource, Name: name, Nth: 1}}
	}
	run := func(random string) []write {
		return []write{at("rayclusters", "job-"+random), at("pods", "job-"+random+"-head"), at("services", "job-internal-api"), at("secrets", "job-creds")}
	}
	c := sailing()
	c.stems, c.fixed = map[string]bool{}, map[string]bool{}
	c.learnNames(run("x2kdl"), run("9f8s2"))
	var got []string
	for _, w := range run("7q4w1") {
		got = append(got, c.named(w.Moment).Name)
	}
	expectLines(t, got, "job-*", "job-*-head", "job-internal-api", "job-creds")
}
