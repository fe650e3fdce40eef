// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"path/filepath"
	"testing"
)

// The Secret that is mounted is optional, so the folder may be empty.
func TestAFolderWithoutACertificateIsNoReasonToEnd(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"ca.crt", "tls.crt", "tls.key"} {
		if got := certDir(folder); got != "" {
			t.Errorf("before there is a %s, %q is taken", name, got)
		}
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := certDir(folder); got != folder {
		t.Errorf("the certificate is not taken from %q but from %q", folder, got)
	}
	if got := certDir(""); got != "" {
		t.Errorf("without a folder it is %q", got)
	}
}
