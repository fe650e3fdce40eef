// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package kapp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/opdock/opdock/api/app/v1"
	kappv1 "github.com/opdock/opdock/api/kapp/v1"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/testenv"
)

func TestAnyCrashPointIsFine(t *testing.T) {
	t.Parallel()
	const renamed = "{apiVersion: app.example.com/v1, kind: AppService, metadata: {name: front}, spec: {image: b}}"
	first := []string{app("db"), app("old", "db"), component("web", withImage("a"), "db")}
	second := []string{component("db", withImage("b")), app("new"), component("web", renamed, "db", "new")}
	for _, test := range []struct {
		name   string
		before []string
		act    func(s *stage, kapp *kappv1.KAPP) *kappv1.KAPP
		gone   bool
	}{
		{"create", nil, func(s *stage, _ *kappv1.KAPP) *kappv1.KAPP { return s.store(first...) }, false},
		{"update", first, func(s *stage, kapp *kappv1.KAPP) *kappv1.KAPP { return s.change(kapp, second...) }, false},
		{"delete", first, func(s *stage, kapp *kappv1.KAPP) *kappv1.KAPP {
			if err := s.Delete(s.t.Context(), kapp); err != nil {
				s.t.Fatal(err)
			}
			return kapp
		}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var want string
			for writes := 0; ; writes++ {
				s := newStage(t)
				var kapp *kappv1.KAPP
				if test.before != nil {
					kapp = s.playUntilReady(s.store(test.before...))
				}
				var cut <-chan struct{}
				if writes > 0 {
					cut = s.wire.CutAfter(writes)
				}
				kapp = test.act(s, kapp)
				died := s.playUntilEnd(kapp, test.gone, cut)
				s.stop()
				if died {
					s.start()
					s.playUntilEnd(kapp, test.gone, nil)
					s.stop()
				}
				got := s.describe()
				switch {
				case writes == 0:
					want = got
				case got != want:
					t.Errorf("killed after write %d:\n%s\nwant:\n%s", writes, got, want)
				}
				if writes > 0 && !died {
					if writes < 3 {
						t.Errorf("there were only %d writes", writes)
					}
					return
				}
			}
		})
	}
}

// playUntilEnd lets every component succeed until the KAPP is ready or gone, or the manager has died: then it returns true.
func (s *stage) playUntilEnd(kapp *kappv1.KAPP, gone bool, cut <-chan struct{}) (died bool) {
	s.t.Helper()
	testenv.Await(s.t, func() string {
		select {
		case <-cut:
			died = true
			return ""
		default:
		}
		s.play()
		var fresh kappv1.KAPP
		err := s.Get(s.t.Context(), client.ObjectKeyFromObject(kapp), &fresh)
		switch {
		case apierrors.IsNotFound(err) && gone:
			return ""
		case err != nil:
			return err.Error()
		case gone:
			return "it is still there"
		default:
			return fleettest.Ready(fresh.Status.Conditions, fresh.Generation)
		}
	})
	return died
}

// describe says what is there, without what differs from run to run.
func (s *stage) describe() string {
	s.t.Helper()
	var (
		apps  appv1.AppServiceList
		kapps kappv1.KAPPList
		lines []string
	)
	if err := s.List(s.t.Context(), &apps, client.InNamespace(s.namespace)); err != nil {
		s.t.Fatal(err)
	}
	if err := s.List(s.t.Context(), &kapps, client.InNamespace(s.namespace)); err != nil {
		s.t.Fatal(err)
	}
	for _, kapp := range kapps.Items {
		rows, err := json.Marshal(kapp.Status.Components)
		if err != nil {
			s.t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("KAPP %s: %d of %d, %s", kapp.Name, kapp.Status.ReadyComponentCount, kapp.Status.ComponentCount, rows))
	}
	for _, app := range apps.Items {
		lines = append(lines, fmt.Sprintf("AppService %s: %s, controlled: %v, labels: %v, depends on: %s",
			app.Name, app.Spec.Image, metav1.GetControllerOf(&app) != nil, app.Labels, app.Annotations["opdock.dev/depends-on"]))
	}
	return strings.Join(lines, "\n")
}
