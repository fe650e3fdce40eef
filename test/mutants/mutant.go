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

// mutant is a defect that a patch brings to the fleet.
type mutant struct {
	Name string
	// Broken says what is wrong then, Kind whose scenario shows it, and Families are those that are tried.
	Broken   string
	Kind     string
	Families []string
	// Files are what the patch changes.
	Files []string
	path  string
}

// result is how a campaign on a mutant ended.
type result struct {
	// Family, Verdict and Title are those of the first finding that was confirmed; empty if there was none.
	Family  string        `json:"family,omitempty"`
	Verdict string        `json:"verdict,omitempty"`
	Title   string        `json:"title,omitempty"`
	After   time.Duration `json:"after,omitempty"` // the beginning of the campaign
	Runs    int           `json:"runs"`
	Took    time.Duration `json:"took"`
	// Failed says why the campaign could not be run.
	Failed string `json:"failed,omitempty"`
}

// mutants reads all patches of a directory.
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

// parse reads the header of a patch: fields whose values may go on in the next line, up to an empty line.
func parse(name, content string) (mutant, error) {
	header, patch, found := strings.Cut(content, "\n\n")
	if !found {
		return mutant{}, errors.New("there is no empty line between the header and the patch")
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
