// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"fmt"
	"os"
	"path/filepath"
)

// tracedFile says which cluster the kubeconfig beside it leads to.
const tracedFile = "traced-cluster"

// NoteTraced notes in the directory of a trace's kubeconfig which cluster is traced. It is a file and not a variable, so that it
// is never about another kubeconfig than the one beside it.
func NoteTraced(dir, cluster string) error {
	if err := os.WriteFile(filepath.Join(dir, tracedFile), []byte(cluster), 0o600); err != nil {
		return fmt.Errorf("writing the name of the traced cluster: %w", err)
	}
	return nil
}

// TracedCluster returns what NoteTraced noted for a kubeconfig; empty if nothing.
func TracedCluster(kubeconfig string) string {
	content, _ := os.ReadFile(filepath.Join(filepath.Dir(kubeconfig), tracedFile)) // it is not of a trace
	return string(content)
}
