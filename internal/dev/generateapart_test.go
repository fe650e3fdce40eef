// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/opdock/opdock/generate"
)

func TestReadGenerated(t *testing.T) {
	failed := errors.New("exit status 1")
	problems := &generate.Error{Problems: []generate.Problem{{File: "api/v1/t.go", Line: 3, Column: 4, Message: "no"}}}
	encoded, err := json.Marshal(problems)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readGenerated(encoded, "", failed); err == nil || err.Error() != problems.Error() {
		t.Errorf("problems: %v", err)
	}
	if _, err := readGenerated(nil, "opdock: nothing to generate: no package has markers\n  see: opdock\n", failed); !errors.Is(err, generate.ErrNothing) {
		t.Errorf("nothing: %v", err)
	}
	if _, err := readGenerated(nil, "opdock: it rained\n", failed); err == nil || err.Error() != "it rained" {
		t.Errorf("anything: %v", err)
	}
	if _, err := readGenerated(nil, "", failed); !errors.Is(err, failed) {
		t.Errorf("silence: %v", err)
	}
	encoded, err = json.Marshal(&generate.Result{Dir: "/src", Changes: []generate.Change{{Path: "a.go", Kind: generate.Changed}}, Files: 3})
	if err != nil {
		t.Fatal(err)
	}
	result, err := readGenerated(encoded, "  something for people", nil)
	if err != nil || result.Dir != "/src" || len(result.Changes) != 1 || result.Files != 3 {
		t.Errorf("got %+v, %v", result, err)
	}
}
