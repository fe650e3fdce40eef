// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"net/http"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// checkedManager keeps its check of readiness.
type checkedManager struct {
	ctrl.Manager

	elected chan struct{}
	ready   healthz.Checker
}

func (m *checkedManager) Elected() <-chan struct{}                      { return m.elected }
func (m *checkedManager) GetCache() cache.Cache                         { return nil }
func (m *checkedManager) AddHealthzCheck(string, healthz.Checker) error { return nil }

func (m *checkedManager) AddReadyzCheck(_ string, check healthz.Checker) error {
	m.ready = check
	return nil
}

// A manager that waits for another to end is ready to take over; one that need not wait is not ready before it sees anything.
func TestReady(t *testing.T) {
	started := make(chan struct{})
	close(started)
	for name, test := range map[string]struct {
		leaderElection bool
		elected        chan struct{}
		looked, ready  bool
	}{
		"waiting for another":         {leaderElection: true, ready: true},
		"not started":                 {},
		"elected, and knows no kinds": {leaderElection: true, elected: started},
		"started, and knows no kinds": {elected: started},
		"started, without kinds":      {elected: started, looked: true, ready: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := &checkedManager{elected: test.elected}
			if err := addChecks(m, &arrivals{looked: test.looked}, test.leaderElection); err != nil {
				t.Fatal(err)
			}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := m.ready(request); (err == nil) != test.ready {
				t.Errorf("the check says %v", err)
			}
		})
	}
}
