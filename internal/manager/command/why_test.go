// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"

	"github.com/opdock/opdock/why"
)

func TestEndpointAnswersOnlyThisMachine(t *testing.T) {
	handler := onlyLocal(why.New(why.Options{}).HTTPHandler())
	for _, test := range []struct {
		host, origin string
		want         int
	}{
		{"127.0.0.1:8082", "", http.StatusOK},
		{"localhost:8082", "http://localhost:9000", http.StatusOK},
		{"[::1]:8082", "", http.StatusOK},
		{"evil.example:8082", "", http.StatusForbidden},
		{"127.0.0.1.evil.example", "", http.StatusForbidden},
		{"127.0.0.1:8082", "https://evil.example", http.StatusForbidden},
		{"127.0.0.1:8082", "null", http.StatusForbidden},
	} {
		request := httptest.NewRequest(http.MethodGet, "/why/summary", nil)
		request.Host = test.host
		if test.origin != "" {
			request.Header.Set("Origin", test.origin)
		}
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		if answer.Code != test.want {
			t.Errorf("host %s, origin %q: %d, want %d", test.host, test.origin, answer.Code, test.want)
		}
	}
}

func TestEndpointEndsWithTheManager(t *testing.T) {
	addresses := make(chan string, 1)
	log := funcr.New(func(_, line string) {
		_, rest, _ := strings.Cut(line, `"address"="`)
		addresses <- strings.TrimSuffix(rest, `"`)
	}, funcr.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	server := &whyServer{address: "127.0.0.1:0", recorder: why.New(why.Options{}), log: log}
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	address := <-addresses
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.Replace(address, "summary", "stream", 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	// Somebody who follows does not hold it up.
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
