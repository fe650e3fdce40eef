// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

// What people type who know kubebuilder or operator-sdk is answered by what it is called here.

// verbsElsewhere are verbs that this program does not have.
var verbsElsewhere = map[string]string{
	"new":  "operator-sdk's new is: opdock init --dir NAME --repo REPO --domain DOMAIN",
	"add":  "operator-sdk's add api and add controller are one: opdock create api --api-version GROUP/VERSION --kind KIND",
	"test": "tests get an API server by: KUBEBUILDER_ASSETS=$(opdock assets) go test ./...",
	"edit": "kubebuilder itself can edit this project; folders for several groups are made by: opdock init --multigroup",
}

// wordsElsewhere follow verbs of the same name.
var wordsElsewhere = map[string]string{
	"up local":         "operator-sdk's up local is: opdock dev",
	"run local":        "operator-sdk's run local is: opdock dev",
	"generate k8s":     "operator-sdk's generate k8s is: opdock generate",
	"generate crds":    "operator-sdk's generate crds is: opdock generate",
	"generate openapi": "operator-sdk's generate openapi is: opdock generate",
}

// elsewhere is a hint about an argument that other tools take there, or nothing.
func elsewhere(cmd *cobra.Command, argument string) []string {
	hint := wordsElsewhere[cmd.Name()+" "+argument]
	if !cmd.HasParent() {
		hint = verbsElsewhere[argument]
	}
	if hint == "" {
		return nil
	}
	return []string{hint}
}

// generatePaths is the argument check of generate, which takes folders.
func generatePaths(cmd *cobra.Command, args []string) error {
	for _, arg := range args {
		hints := elsewhere(cmd, arg)
		if hints == nil {
			continue
		}
		if _, err := os.Stat(arg); err != nil {
			return &usageError{message: fmt.Sprintf("there is no folder %q", arg), hints: append(hints, seeHelp(cmd))}
		}
	}
	return nil
}

// notBelow refuses to look for a project in a folder of one: that is a question of where somebody is, not of what there is.
func notBelow(dir string) error {
	start, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("looking for a project: %w", err)
	}
	for above := start; ; above = filepath.Dir(above) {
		if _, err := os.Stat(filepath.Join(above, "PROJECT")); err == nil {
			if above == start {
				return nil
			}
			return &usageError{
				message: start + " is not the folder of a project, but lies in that of one",
				hints:   []string{"go there: cd " + shellQuote(above), "or name it: --dir " + shellQuote(above)},
			}
		}
		if above == filepath.Dir(above) {
			return nil // whoever needs a project tells that there is none
		}
	}
}
