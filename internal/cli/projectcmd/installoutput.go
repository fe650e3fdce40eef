// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package projectcmd

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/opdock/opdock/internal/apply"
)

// manifestFormat is the value of the -o flag of verbs that apply manifests.
type manifestFormat string

const (
	manifestText manifestFormat = "text"
	manifestJSON manifestFormat = "json"
	manifestYAML manifestFormat = "yaml"
)

var manifestFormats = []string{string(manifestText), string(manifestJSON), string(manifestYAML)}

func (f *manifestFormat) String() string { return string(*f) }

func (f *manifestFormat) Type() string { return "format" }

func (f *manifestFormat) Set(value string) error {
	if !slices.Contains(manifestFormats, value) {
		return fmt.Errorf("must be one of %s", strings.Join(manifestFormats, ", "))
	}
	*f = manifestFormat(value)
	return nil
}

func (a verbs) addManifestFormatFlag(cmd *cobra.Command, format *manifestFormat) {
	*format = manifestText
	cmd.Flags().VarP(format, "output", "o", "output format: text, json, or yaml to print the manifests only")
	a.Complete(cmd, "output", func() []string { return manifestFormats })
}

// printManifests prints objects so that they can be piped into kubectl apply.
func (a verbs) printManifests(objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		content, err := yaml.Marshal(object.Object)
		if err != nil {
			return fmt.Errorf("printing %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		if _, err := fmt.Fprintf(a.Out, "---\n%s", content); err != nil {
			return err
		}
	}
	return nil
}

// projectReport is what programs read.
type projectReport struct {
	Project string          `json:"project"`
	Cluster string          `json:"cluster"`
	DryRun  bool            `json:"dryRun"`
	Objects []apply.Outcome `json:"objects"`
	Notes   []string        `json:"notes"`
}

func (r *projectRun) printOutcomes(outcomes []apply.Outcome) error {
	if r.format == manifestJSON {
		report := projectReport{Project: r.project.Name, DryRun: r.dryRun, Objects: outcomes, Notes: r.notes}
		if r.target != nil {
			report.Cluster = r.target.Title
		}
		if report.Objects == nil {
			report.Objects = []apply.Outcome{}
		}
		if report.Notes == nil {
			report.Notes = []string{}
		}
		return r.PrintJSON(report)
	}
	if len(outcomes) == 0 {
		return nil
	}
	action := "ACTION"
	if r.dryRun {
		action = "WOULD BE"
	}
	table := tabwriter.NewWriter(r.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintf(table, "KIND\tNAMESPACE\tNAME\t%s\n", action)
	for _, one := range outcomes {
		namespace := one.Namespace
		if namespace == "" {
			namespace = "-"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", one.Kind, namespace, one.Name, one.Action)
	}
	return table.Flush()
}

// count is a sentence about outcomes, such as "2 created, 1 unchanged".
func count(outcomes []apply.Outcome) string {
	var parts []string
	for _, action := range apply.Actions {
		n := 0
		for _, one := range outcomes {
			if one.Action == action {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, action))
		}
	}
	return strings.Join(parts, ", ")
}
