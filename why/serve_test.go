// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opdock/opdock/internal/freeport"
	"github.com/opdock/opdock/internal/testenv"
	"github.com/opdock/opdock/why/internal/serving"
)

// awaitSummary asks an endpoint until it answers.
func awaitSummary(t *testing.T, address string) (s Summary) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Patience)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/why/summary", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if ctx.Err() != nil {
			t.Fatalf("it does not answer: %v", err)
		}
		if err != nil {
			continue
		}
		defer response.Body.Close()
		if err := json.NewDecoder(response.Body).Decode(&s); err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// Each controller adds its recorder to the manager, and the environment decides whether it serves.
func TestRecorderServesAtTheGivenAddress(t *testing.T) {
	address, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(BindAddressVariable, address)
	s := newStage(t, Options{})
	s.run(3)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 2)
	for range cap(ended) {
		go func() { ended <- s.recorder.Start(ctx) }()
	}
	if got := awaitSummary(t, address); got.Last != 3 {
		t.Errorf("got %+v", got)
	}
	cancel()
	for range cap(ended) {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if conn, err := net.Dial("tcp", address); err == nil {
		conn.Close()
		t.Error("it is still served")
	}
}

func TestRecorderServesNothingElse(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var off *Recorder
	for _, recorder := range []*Recorder{off, New(Options{})} {
		for _, address := range []string{"", "0.0.0.0:0", "nonsense"} {
			t.Setenv(BindAddressVariable, address)
			if err := recorder.Start(ended); err != nil {
				t.Errorf("%q ends the operator: %v", address, err)
			}
		}
	}
	for _, address := range []string{"0.0.0.0:0", ":0", "192.168.1.2:80", "example.com:80"} {
		if err := New(Options{}).Serve(t.Context(), address); err == nil {
			t.Errorf("%s is served", address)
		}
	}
}

func TestEndpointAnswersOnlyThisMachine(t *testing.T) {
	handler := serving.OnlyLocal(New(Options{}).HTTPHandler())
	for _, test := range []struct {
		host, origin, site string
		want               int
	}{
		{"127.0.0.1:8082", "", "", http.StatusOK},
		{"127.0.0.1:8082", "", "none", http.StatusOK},
		{"localhost:8082", "http://localhost:9000", "same-site", http.StatusOK},
		{"[::1]:8082", "", "", http.StatusOK},
		{"evil.example:8082", "", "", http.StatusForbidden},
		{"127.0.0.1.evil.example", "", "", http.StatusForbidden},
		{"127.0.0.1:8082", "https://evil.example", "", http.StatusForbidden},
		{"127.0.0.1:8082", "null", "", http.StatusForbidden},
		{"127.0.0.1:8082", "", "cross-site", http.StatusForbidden}, // a page's image or script
	} {
		request := httptest.NewRequest(http.MethodGet, "/why/summary", nil)
		request.Host = test.host
		if test.origin != "" {
			request.Header.Set("Origin", test.origin)
		}
		if test.site != "" {
			request.Header.Set("Sec-Fetch-Site", test.site)
		}
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		if answer.Code != test.want {
			t.Errorf("host %s, origin %q, site %q: %d, want %d", test.host, test.origin, test.site, answer.Code, test.want)
		}
	}
}

// managerOf is a manager as far as its client goes.
type managerOf struct {
	ctrl.Manager
	client client.Client
}

func (m managerOf) GetClient() client.Client { return m.client }

func TestRecorderOfAManager(t *testing.T) {
	recorder, plain := New(Options{}), fake.NewClientBuilder().Build()
	if got := RecorderOf(managerOf{client: recorder.Client(plain)}); got != recorder {
		t.Errorf("got %v", got)
	}
	if got := RecorderOf(managerOf{client: plain}); got != nil {
		t.Errorf("a manager that records nothing has %v", got)
	}
}

func TestGathered(t *testing.T) {
	recorder := New(Options{MaxRecords: 2})
	for id := uint64(1); id <= 3; id++ {
		recorder.Gather(&Record{ID: id, Controller: "web", Object: Object{Kind: "Deployment", Name: "web"}})
	}
	if got := recorder.Records(Query{After: 2}); len(got) != 1 || got[0].ID != 3 {
		t.Errorf("after 2 there are %v", got)
	}
	if got := recorder.Summary(); got.Last != 3 || got.Kept.Records != 2 || got.Dropped.Records != 1 {
		t.Errorf("got %+v", got)
	}
	var off *Recorder
	off.Gather(&Record{})
}
