// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercmd

import (
	"strings"
	"testing"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/cli/clitest"
	"github.com/opdock/opdock/internal/cli/cmdutil"
)

func TestClusterOfDevIsProposed(t *testing.T) {
	yard := cluster.Status{Name: "yard", State: cluster.Alive}
	const hint = "to use the cluster that is alive: --name yard"
	for name, test := range map[string]struct {
		all  []cluster.Status
		args []string
		want bool
	}{
		"none named":  {[]cluster.Status{yard}, []string{"kubeconfig"}, true},
		"one named":   {[]cluster.Status{yard}, []string{"kubeconfig", "--name", "who"}, false},
		"none alive":  {[]cluster.Status{{Name: "yard", State: cluster.Stopped}}, []string{"kubeconfig"}, false},
		"two to take": {[]cluster.Status{yard, {Name: "other", State: cluster.Alive}}, []string{"kubeconfig"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			code, screen := newConsole(&clitest.FakeDock{Clusters: clitest.Clusters(test.all...)}).Screen(t.Context(), test.args...)
			clitest.ExpectCode(t, code, cmdutil.ExitError)
			if got := strings.Contains(screen, hint); got != test.want {
				t.Errorf("hint: %t\n%s", got, screen)
			}
		})
	}
}
