// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package ship

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// shared are the files of config that the chart contains as they are, by their folder in the chart.
var shared = map[string][]string{
	"files/crds":       {"config/crd/bases/*.yaml"},
	"files/rbac":       {"config/rbac/role.yaml", "config/rbac/*_roles.yaml"},
	"files/prometheus": {"config/prometheus/monitor.yaml", "config/prometheus/rules.yaml"},
	"files/grafana":    {"config/grafana/opdock.json"},
	"files/limits":     {"config/limits/policy.yaml", "config/limits/binding.yaml"},
}

// SyncChart copies to the chart what it shares with config, and removes what config does not have any more. It returns
// the files that were not up to date; with check it leaves them as they are.
func SyncChart(root string, check bool) (stale []string, err error) {
	for folder, patterns := range shared {
		target := filepath.Join(root, "charts", "opdock", folder)
		wanted := map[string][]byte{}
		for _, pattern := range patterns {
			sources, err := filepath.Glob(filepath.Join(root, pattern))
			if err != nil {
				return nil, err
			}
			for _, source := range sources {
				if wanted[filepath.Join(target, filepath.Base(source))], err = os.ReadFile(source); err != nil {
					return nil, err
				}
			}
		}
		changed, err := syncFolder(target, wanted, check)
		if err != nil {
			return nil, fmt.Errorf("copying to %s: %w", target, err)
		}
		stale = append(stale, changed...)
	}
	slices.Sort(stale)
	return stale, nil
}

func syncFolder(folder string, wanted map[string][]byte, check bool) (stale []string, err error) {
	present, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		return nil, err
	}
	for _, path := range present {
		if _, ok := wanted[path]; ok {
			continue
		}
		stale = append(stale, path)
		if !check {
			if err := os.Remove(path); err != nil {
				return nil, err
			}
		}
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	for path, content := range wanted {
		if is, err := os.ReadFile(path); err == nil && bytes.Equal(is, content) {
			continue
		}
		stale = append(stale, path)
		if !check {
			if err := os.WriteFile(path, content, 0o644); err != nil {
				return nil, err
			}
		}
	}
	return stale, nil
}
