// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"github.com/spf13/cobra"
)

// Hints for commands of kubebuilder and operator-sdk: the corresponding opdock command.

// otherToolsVerbs are verbs that this program does not have.
var otherToolsVerbs = map[string]string{
	"new":  "instead of operator-sdk new, use: opdock init --dir NAME --repo REPO --domain DOMAIN",
	"add":  "instead of operator-sdk add, use: opdock create api --api-version GROUP/VERSION --kind KIND",
	"test": "to run tests against an API server: KUBEBUILDER_ASSETS=$(opdock assets) go test ./...",
	"edit": "use kubebuilder edit on this project; for a multi-group layout, create it with: opdock init --multigroup",
}

// otherToolsWords follow verbs of the same name.
var otherToolsWords = map[string]string{
	"up local":         "instead of operator-sdk up local, use: opdock dev",
	"run local":        "instead of operator-sdk run local, use: opdock dev",
	"generate k8s":     "instead of operator-sdk generate k8s, use: opdock generate",
	"generate crds":    "instead of operator-sdk generate crds, use: opdock generate",
	"generate openapi": "instead of operator-sdk generate openapi, use: opdock generate",
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
