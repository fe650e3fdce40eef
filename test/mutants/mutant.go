// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// mutant is a defect that a patch adds to the fleet.
type mutant struct {
	Name string
	// Broken describes the defect, Kind selects the scenario that shows it, and Families are the families to try.
	Broken   string
	Kind     string
	Families []string
	// Files are the files that the patch changes.
	Files []string
	path  string
}

// result is the result of a campaign on a mutant.
type result struct {
	// Family, Verdict and Title describe the first confirmed finding. They are empty if there is none.
	Family  string        `json:"family,omitempty"`
	Verdict string        `json:"verdict,omitempty"`
	Title   string        `json:"title,omitempty"`
	After   time.Duration `json:"after,omitempty"` // since the start of the campaign
	Runs    int           `json:"runs"`
	Took    time.Duration `json:"took"`
	// Failed is the error of a campaign that could not run.
	Failed string `json:"failed,omitempty"`
}

func mutants(dir string) ([]mutant, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		return nil, err
	}
	var all []mutant
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading a mutant: %w", err)
		}
		one, err := parse(strings.TrimSuffix(filepath.Base(path), ".patch"), string(content))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if one.path, err = filepath.Abs(path); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// parse reads the header of a patch, which ends at the first empty line. The value of a field may continue on the
// next line.
func parse(name, content string) (mutant, error) {
	header, patch, found := strings.Cut(content, "\n\n")
	if !found {
		return mutant{}, errors.New("add an empty line between the header and the patch")
	}
	fields, last := map[string]string{}, ""
	for _, line := range strings.Split(header, "\n") {
		key, value, isField := strings.Cut(line, ": ")
		switch {
		case isField && !strings.Contains(key, " "):
			last = key
			fields[key] = value
		case last != "":
			fields[last] += " " + strings.TrimSpace(line)
		}
	}
	m := mutant{Name: name, Broken: fields["Broken"], Kind: fields["Kind"], Families: strings.Split(fields["Families"], ",")}
	if m.Broken == "" || m.Kind == "" || fields["Families"] == "" {
		return mutant{}, errors.New("the header needs Broken, Kind and Families")
	}
	for _, line := range strings.Split(patch, "\n") {
		if file, ok := strings.CutPrefix(line, "+++ b/"); ok {
			m.Files = append(m.Files, file)
		}
	}
	return m, nil
}
