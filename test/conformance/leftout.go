// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// exclusion lists specs that do not run, with the reason.
type exclusion struct {
	// Reason applies to all of them.
	Reason string `json:"reason"`
	// Patterns are regular expressions. Each must match the name of at least one spec.
	Patterns []string `json:"patterns"`

	compiled []*regexp.Regexp
}

// selection divides the specs into those that run and those that are left out.
type selection struct {
	run     []string
	leftOut map[string]string // reason by name
}

// with returns the specs that ran and those that are left out.
func (s selection) with(ran []spec) []spec {
	all := slices.Clone(ran)
	for name := range s.leftOut {
		all = append(all, spec{Name: name, State: leftOut})
	}
	slices.SortFunc(all, func(a, b spec) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func (s selection) mark(name string) string {
	if _, out := s.leftOut[name]; out {
		return "left out"
	}
	return "run"
}

func readLeftOut(path string) ([]exclusion, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseLeftOut(data)
}

func parseLeftOut(data []byte) (list []exclusion, err error) {
	if err := yaml.UnmarshalStrict(data, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", leftOutPath, err)
	}
	for i := range list {
		one := &list[i]
		if strings.TrimSpace(one.Reason) == "" || len(one.Patterns) == 0 {
			return nil, fmt.Errorf("%s: entry %d needs a reason and patterns", leftOutPath, i+1)
		}
		for _, pattern := range one.Patterns {
			compiled, err := regexp.Compile(pattern)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", leftOutPath, err)
			}
			one.compiled = append(one.compiled, compiled)
		}
	}
	return list, nil
}

// choose divides specs into those that run and those that are left out. A pattern that matches no spec is an error,
// because upstream has renamed or removed the spec. So is a spec with two reasons.
func choose(specs []spec, exclusions []exclusion) (selection, error) {
	chosen := selection{leftOut: map[string]string{}}
	var failures []error
	used := map[string]bool{}
	for _, s := range specs {
		for _, one := range exclusions {
			for i, pattern := range one.compiled {
				if !pattern.MatchString(s.Name) {
					continue
				}
				used[one.Patterns[i]] = true
				if other, twice := chosen.leftOut[s.Name]; twice && other != one.Reason {
					failures = append(failures, fmt.Errorf("%s: two reasons for %q", leftOutPath, s.Name))
				}
				chosen.leftOut[s.Name] = one.Reason
			}
		}
		if _, out := chosen.leftOut[s.Name]; !out {
			chosen.run = append(chosen.run, s.Name)
		}
	}
	for _, one := range exclusions {
		for _, pattern := range one.Patterns {
			if !used[pattern] {
				failures = append(failures, fmt.Errorf("%s: no Conformance spec matches %q; remove the pattern or correct it", leftOutPath, pattern))
			}
		}
	}
	slices.Sort(chosen.run)
	return chosen, errors.Join(failures...)
}
