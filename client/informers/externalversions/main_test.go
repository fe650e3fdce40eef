// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package externalversions_test

import (
	"os"
	"testing"

	"github.com/opdock/opdock/internal/clienttest"
)

func TestMain(m *testing.M) {
	os.Exit(clienttest.Run(m, "../../../config/crd/bases"))
}

// TestExamplesHaveAServer shows that examples are skipped. It also tells go test that their result depends on the
// environment: what TestMain reads it does not notice, and would take the result of a run that skipped them for good.
func TestExamplesHaveAServer(t *testing.T) {
	clienttest.NeedsServer(t)
}
