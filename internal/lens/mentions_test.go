// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/testenv"
)

func TestMentions(t *testing.T) {
	t.Parallel()
	m := mentions{"ca-pair": true, "alpha": true, "v1": true, "team-a": true}
	for name, want := range map[string]bool{
		"ca-pair": true, "alpha": true, "alpha-credentials": true, "my-alpha": true, "my-alpha-key": true, "my.alpha.key": true, "the-ca-pair-key": true, "system:alpha": true,
		"v1": true, "v1-key": false, "alphabet": false, "ca": false, "pair": false, "ship": false, "": false, "team-ab": false, strings.Repeat("alpha-", 100): false,
	} {
		if got := m.match(name); got != want {
			t.Errorf("%q: got %t", name, got)
		}
	}
}

// TestNamesFromCustomResources reads a custom resource, by a watch, a get or a list, and then what it refers to.
func TestNamesFromCustomResources(t *testing.T) {
	t.Parallel()
	const (
		metadata = `"metadata":{"name":"one","uid":"u","resourceVersion":"7"}`
		issuer   = `{"apiVersion":"sea.example.com/v1","kind":"Issuer",` + metadata + `,"spec":{"ca":{"secretName":"ca-pair"},"targets":["team-a"],"password":"hunter2","text":"Any text."},"status":{"phase":"sailing"}}`
		pod      = `{"apiVersion":"v1","kind":"Pod",` + metadata + `,"spec":{"serviceAccountName":"ca-pair"}}`
	)
	for name, test := range map[string]struct {
		path, answer string
		want         string
	}{
		"watched":            {"/apis/sea.example.com/v1/issuers?watch=true", `{"type":"ADDED","object":` + issuer + `}`, "team-a,ca-pair; team-a; team-a,key-of-one; ca-pair; ca-pair"},
		"read":               {"/apis/sea.example.com/v1/issuers/one", issuer, "team-a,ca-pair; team-a; team-a,key-of-one; ca-pair; ca-pair"},
		"listed":             {"/apis/sea.example.com/v1/issuers", `{"apiVersion":"sea.example.com/v1","kind":"IssuerList","items":[` + issuer + `]}`, "team-a,ca-pair; team-a; team-a,key-of-one; ca-pair; ca-pair"},
		"kind of Kubernetes": {"/api/v1/namespaces/x/pods/one", pod, "; ; ; ; "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if strings.HasPrefix(test.path, strings.TrimPrefix(r.URL.Path, "/prefix")) {
					fmt.Fprintln(w, test.answer)
					return
				}
				fmt.Fprint(w, `{"apiVersion":"v1","kind":"List"}`)
			})
			s.read(s.request(http.MethodGet, test.path, ""))
			s.lastRequest()
			paths := []string{"/api/v1/namespaces/team-a/secrets/ca-pair", "/api/v1/namespaces/team-a/secrets/sailing", "/api/v1/namespaces/team-a/secrets/key-of-one",
				"/api/v1/namespaces/ship/secrets?fieldSelector=metadata.name%3Dca-pair",
				"/api/v1/namespaces/ship/secrets?watch=true&fieldSelector=metadata.name%3Dca-pair"}
			for _, path := range paths {
				s.read(s.request(http.MethodGet, path, ""))
			}
			var got []string
			testenv.Eventually(t, "the requests are in the stream", func() error {
				got = nil
				for _, e := range s.events() {
					if e.Request != nil && e.Request.Resource.Resource == "secrets" && (e.Request.Open || e.Request.Verb != "watch") {
						got = append(got, strings.Join(e.Request.Mentioned, ","))
					}
				}
				if len(got) < len(paths) {
					return fmt.Errorf("there are %d", len(got))
				}
				return nil
			})
			if strings.Join(got, "; ") != test.want {
				t.Errorf("got %q, want %q", strings.Join(got, "; "), test.want)
			}
			totals := s.lens.stream.Totals()
			again := totals.reopen()
			again = again.clone()
			want := []string{"ca-pair", "key-of-one", "team-a"}
			switch name {
			case "read":
				want = slices.Insert(want, 2, "one")
			case "kind of Kubernetes":
				want = nil
			}
			if !slices.Equal(totals.Mentioned, want) || !slices.Equal(again.Mentioned, want) {
				t.Errorf("totals have %q, and %q when they are read again", totals.Mentioned, again.Mentioned)
			}
			if recorded, err := json.Marshal(s.events()); err != nil || strings.Contains(string(recorded), "hunter2") {
				t.Errorf("recorded is %s, %v", recorded, err)
			}
		})
	}
}
