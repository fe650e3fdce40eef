// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/opdock/opdock/internal/freeport"
	"github.com/opdock/opdock/why"
)

func TestEndpointEndsWithTheManager(t *testing.T) {
	address, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	server := &whyServer{address: address, recorder: why.New(why.Options{}), log: logr.Discard()}
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/why/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	for ; err != nil; response, err = http.DefaultClient.Do(request) {
		select {
		case err := <-ended:
			t.Fatalf("it does not serve: %v", err)
		case <-time.After(10 * time.Millisecond): // it does not serve yet
		}
	}
	defer response.Body.Close()
	// A follower does not delay it.
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
