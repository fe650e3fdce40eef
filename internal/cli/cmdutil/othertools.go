// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"github.com/spf13/cobra"
)

// What people type who know kubebuilder or operator-sdk is answered by what it is called here.

// otherToolsVerbs are verbs that this program does not have.
var otherToolsVerbs = map[string]string{
	"new":  "operator-sdk's new is: opdock init --dir NAME --repo REPO --domain DOMAIN",
	"add":  "operator-sdk's add api and add controller are one: opdock create api --api-version GROUP/VERSION --kind KIND",
	"test": "tests get an API server by: KUBEBUILDER_ASSETS=$(opdock assets) go test ./...",
	"edit": "kubebuilder itself can edit this project; folders for several groups are made by: opdock init --multigroup",
}

// otherToolsWords follow verbs of the same name.
var otherToolsWords = map[string]string{
	"up local":         "operator-sdk's up local is: opdock dev",
	"run local":        "operator-sdk's run local is: opdock dev",
	"generate k8s":     "operator-sdk's generate k8s is: opdock generate",
	"generate crds":    "operator-sdk's generate crds is: opdock generate",
	"generate openapi": "operator-sdk's generate openapi is: opdock generate",
}

// InOtherTools is a hint about an argument that other tools take there, or nothing.
func InOtherTools(cmd *cobra.Command, argument string) []string {
	hint := otherToolsWords[cmd.Name()+" "+argument]
	if !cmd.HasParent() {
		hint = otherToolsVerbs[argument]
	}
	if hint == "" {
		return nil
	}
	return []string{hint}
}
