// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"

	"github.com/opdock/opdock/cluster"
)

// profile starts profiles of the control plane and the manager if they are enabled. The function that it returns
// waits for them and writes files for `go tool pprof`.
func (r *raced) profile(ctx context.Context, c *cluster.Cluster) (end func() error) {
	if r.profiles == "" {
		return func() error { return nil }
	}
	var taking errgroup.Group
	for _, kind := range []string{"profile", "allocs"} {
		path := "/debug/pprof/" + kind
		taking.Go(func() error {
			server, err := kubernetes.NewForConfig(unlimited(c.Config()))
			if err != nil {
				return err
			}
			data, err := server.Discovery().RESTClient().Get().AbsPath(path).Param("seconds", profileSeconds).DoRaw(ctx)
			if err != nil {
				return fmt.Errorf("taking a profile of the control plane: %w", err)
			}
			return os.WriteFile(r.profiles+".server."+kind, data, 0o600)
		})
		if r.profiled == "" {
			continue
		}
		taking.Go(func() error { return r.download(ctx, path+"?seconds="+profileSeconds, kind) })
	}
	return func() error {
		if err := taking.Wait(); err != nil || r.profiled == "" {
			return err
		}
		return r.download(ctx, "/debug/pprof/heap?gc=1", "heap")
	}
}

func (r *raced) download(ctx context.Context, path, kind string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.profiled+path, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("taking a profile of the manager: %w", err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(response.Status)
	}
	if err != nil {
		return fmt.Errorf("taking a profile of the manager: %w", err)
	}
	return os.WriteFile(r.profiles+".manager."+kind, data, 0o600)
}

// profileSeconds is the duration of a profile. It is shorter than most runs.
const profileSeconds = "10"
