// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/opdock/opdock/why"
)

func TestStart(t *testing.T) {
	dir := t.TempDir()
	running, err := Start(Options{StateDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer running.Close()
	path := filepath.Join(dir, FileName)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file File
	if err := json.Unmarshal(data, &file); err != nil || file.Address != running.URL() {
		t.Errorf("%s says %q (%v), and the page is at %s", path, data, err, running.URL())
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v (%v)", info.Mode(), err)
	}
	get := func(path string) (int, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, running.URL()+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0, err
		}
		// Not read to its end, which a stream does not have.
		return response.StatusCode, response.Body.Close()
	}
	for _, path := range []string{"/", "/api/stream"} {
		if status, err := get(path); err != nil || status != http.StatusOK {
			t.Errorf("%s: %d, %v", path, status, err)
		}
	}
	if err := running.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
	if status, err := get("/"); err == nil {
		t.Errorf("it still answers: %d", status)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

func TestStartOnlyOnLoopback(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.168.1.2:0", "example.com:0", "10.0.0.1:80"} {
		running, err := Start(Options{Address: address})
		var refused *LoopbackError
		if !errors.As(err, &refused) {
			t.Errorf("%s: %v", address, err)
		}
		if err == nil {
			running.Close()
		}
	}
	for _, address := range []string{"127.0.0.1:0", "localhost:0", "127.0.0.2:0"} {
		running, err := Start(Options{Address: address})
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		running.Close()
	}
	if err := CheckAddress("127.0.0.1"); err == nil {
		t.Error("an address without a port is taken for one")
	}
}

func TestStartWithoutAFolder(t *testing.T) {
	if running, err := Start(Options{StateDir: filepath.Join(t.TempDir(), "missing")}); err == nil {
		running.Close()
		t.Error("the note could not be written, and there is no error")
	}
}

// startEndless serves an answer without an end, and lets so many clients ask for it that do not read it. It returns how
// writing to them ends.
func startEndless(t *testing.T, answerWithin time.Duration, clients int) (*Running, <-chan error) {
	t.Helper()
	ended := make(chan error, clients)
	endless := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for chunk := make([]byte, 64<<10); ; {
			if _, err := w.Write(chunk); err != nil {
				ended <- err
				return
			}
		}
	})
	running, err := Start(Options{Records: endless, answerWithin: answerWithin})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { running.Close() })
	address := strings.TrimPrefix(running.URL(), "http://")
	for range clients {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		fmt.Fprintf(conn, "GET /why/records HTTP/1.1\r\nHost: %s\r\n\r\n", address)
	}
	return running, ended
}

func TestUnreadResponsesTimeOut(t *testing.T) {
	_, ended := startEndless(t, 10*time.Millisecond, 1)
	select {
	case err := <-ended:
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("it ends with %v", err)
		}
	case <-time.After(patience):
		t.Error("it is never given up")
	}
}

// Clients that ask and do not read take all places there are, and make room for others.
func TestUnreadResponsesDelayNoOther(t *testing.T) {
	running, _ := startEndless(t, time.Hour, maxConnections)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, running.URL()+"/api/tree", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatalf("%d clients that do not read shut the page: %v", maxConnections, err)
	}
	response.Body.Close()
}

// The time for an answer does not end a stream that is read.
func TestStreamsOutliveTheTimeForAnswers(t *testing.T) {
	changes := NewChanges()
	running, err := Start(Options{Changes: changes, answerWithin: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer running.Close()
	follower := follow(t, running.URL()+"/api/stream", "")
	for i := range 3 {
		changes.Add(Change{Object: why.Object{Name: strconv.Itoa(i)}})
		var batch changesMessage
		follower.next(t, "changes", &batch)
		if len(batch.Changes) != 1 {
			t.Errorf("it tells %+v", batch)
		}
	}
}
