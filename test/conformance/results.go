// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// results holds the last runs, by how requests reached the API server: direct or lens.
type results map[string]result

type result struct {
	Kubernetes string `json:"kubernetes"`
	Seconds    int    `json:"seconds"`
	Procs      int    `json:"procs"`
	Specs      []spec `json:"specs"`
}

func readResults(path string) (results, error) {
	all := results{}
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, nil
}

func (all results) write(path string) error {
	data, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}
