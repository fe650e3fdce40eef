// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	utilexec "k8s.io/utils/exec"

	"github.com/opdock/opdock/controlplane/internal/nodes"
)

var started = metav1.NewTime(time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC))

func podWith(annotations map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1", Annotations: annotations},
		Spec:       corev1.PodSpec{NodeName: "node-0", Containers: []corev1.Container{{Name: "c"}, {Name: "side"}}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
			{Name: "c", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}}},
			{Name: "side", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}},
		}},
	}
}

// serverFor returns a server that knows one pod, the store of its pods, and a client of it.
func serverFor(t *testing.T, pod *corev1.Pod, node *corev1.Node) (*Server, cache.Indexer, *http.Client) {
	t.Helper()
	pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	machines := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	if err := errors.Join(pods.Add(pod), machines.Add(node)); err != nil {
		t.Fatal(err)
	}
	s, err := New(corelisters.NewPodLister(pods), corelisters.NewNodeLister(machines), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, pods, &http.Client{Transport: &http.Transport{
		DialContext:     s.Dial,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
}

var healthy = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-0"}}

func get(t *testing.T, client *http.Client, path string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://node-0:10250"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func TestLogs(t *testing.T) {
	three := map[string]string{LogsAnnotation: "one\ntwo\nthree"}
	const stamp = "2026-05-04T12:00:00Z "
	for name, test := range map[string]struct {
		annotations map[string]string
		query       string
		code        int
		want        string
	}{
		"nothing said":     {want: "opdock: container c of pod web is simulated and writes no log. The annotation opdock.dev/logs sets what is shown here.\n"},
		"annotation":       {annotations: three, want: "one\ntwo\nthree\n"},
		"of the container": {annotations: map[string]string{LogsAnnotation: "pod", LogsAnnotation + ".c": "mine"}, want: "mine\n"},
		"empty":            {annotations: map[string]string{LogsAnnotation: ""}, want: ""},
		"tail":             {annotations: three, query: "?tailLines=2", want: "two\nthree\n"},
		"tail of more":     {annotations: three, query: "?tailLines=20", want: "one\ntwo\nthree\n"},
		"tail of none":     {annotations: three, query: "?tailLines=0", want: ""},
		"timestamps":       {annotations: three, query: "?timestamps=true&tailLines=2", want: stamp + "two\n" + stamp + "three\n"},
		"limit":            {annotations: three, query: "?limitBytes=5", want: "one\nt"},
		"since before":     {annotations: three, query: "?sinceTime=2026-05-04T11:00:00Z", want: "one\ntwo\nthree\n"},
		"since after":      {annotations: three, query: "?sinceTime=2026-05-04T13:00:00Z", want: ""},
		"since a second":   {annotations: three, query: "?sinceSeconds=1", want: ""},
		"wrong tail":       {query: "?tailLines=x", code: http.StatusBadRequest, want: "tailLines must be a number of at least 0, not \"x\"\n"},
		"no previous":      {query: "?previous=true", code: http.StatusBadRequest, want: "previous terminated container \"c\" in pod \"web\" not found\n"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, client := serverFor(t, podWith(test.annotations), healthy)
			code, got := get(t, client, "/containerLogs/shop/web/c"+test.query)
			if test.code == 0 {
				test.code = http.StatusOK
			}
			if code != test.code || got != test.want {
				t.Errorf("got %d %q, want %d %q", code, got, test.code, test.want)
			}
		})
	}
}

func TestLogsThatCannotBe(t *testing.T) {
	lost := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-0"},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: nodes.Lost, Status: corev1.ConditionTrue}}},
	}
	for name, test := range map[string]struct {
		node *corev1.Node
		path string
		code int
		says string
	}{
		"waiting container": {healthy, "/containerLogs/shop/web/side", http.StatusBadRequest, "waiting to start: ErrImagePull"},
		"no such container": {healthy, "/containerLogs/shop/web/x", http.StatusBadRequest, "not available"},
		"no such pod":       {healthy, "/containerLogs/shop/x/c", http.StatusNotFound, "not found"},
		"something else":    {healthy, "/metrics", http.StatusNotFound, "simulated"},
		"lost node":         {lost, "/containerLogs/shop/web/c", http.StatusServiceUnavailable, "does not respond"},
	} {
		_, _, client := serverFor(t, podWith(nil), test.node)
		if code, got := get(t, client, test.path); code != test.code || !strings.Contains(got, test.says) {
			t.Errorf("%s: got %d %q", name, code, got)
		}
	}
}

func TestLogFile(t *testing.T) {
	s, _, client := serverFor(t, podWith(nil), healthy)
	folder := filepath.Join(s.logs, "shop", "web")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(folder+".log", []byte("of the pod\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, got := get(t, client, "/containerLogs/shop/web/c"); got != "of the pod\n" {
		t.Errorf("got %q", got)
	}
	if err := os.WriteFile(filepath.Join(folder, "c.log"), []byte("of the container\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, got := get(t, client, "/containerLogs/shop/web/c"); got != "of the container\n" {
		t.Errorf("got %q", got)
	}
	// A link does not lead out of the folder.
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(filepath.Join(folder, "c.log")), os.Symlink(secret, filepath.Join(folder, "c.log"))); err != nil {
		t.Fatal(err)
	}
	if code, got := get(t, client, "/containerLogs/shop/web/c"); code == http.StatusOK || strings.Contains(got, "secret\n") {
		t.Errorf("got %d %q", code, got)
	}
}

func TestFollow(t *testing.T) {
	pod := podWith(map[string]string{LogsAnnotation: "one"})
	_, pods, client := serverFor(t, pod, healthy)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://node-0:10250/containerLogs/shop/web/c?follow=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	expect := func(want string) {
		t.Helper()
		got := make([]byte, len(want))
		if _, err := io.ReadFull(response.Body, got); err != nil || string(got) != want {
			t.Fatalf("got %q, %v; want %q", got, err, want)
		}
	}
	expect("one\n")
	change := func(log string, ended bool) {
		t.Helper()
		next := podWith(map[string]string{LogsAnnotation: log})
		if ended {
			next.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
		}
		if err := pods.Update(next); err != nil {
			t.Fatal(err)
		}
	}
	change("one\ntwo", false)
	expect("two\n")
	change("one\ntwo\nend", true)
	expect("end\n")
	if rest, err := io.ReadAll(response.Body); err != nil || len(rest) > 0 {
		t.Errorf("after its end: %q, %v", rest, err)
	}
}

func TestAnswers(t *testing.T) {
	const answers = `
- command: pg_isready
  stdout: "accepting connections\n"
- command: psql *
  stderr: "no such table\n"
  exitCode: 2
- command: cat
  echo: true
`
	for name, test := range map[string]struct {
		annotation, command, in string
		out, errOut             string
		code                    int
	}{
		"success":      {annotation: answers, command: "pg_isready", out: "accepting connections\n"},
		"failure":      {annotation: answers, command: "psql -c select", errOut: "no such table\n", code: 2},
		"echo":         {annotation: answers, command: "cat", in: "typed", out: "typed"},
		"not there":    {annotation: answers, command: "ls", errOut: "no answer to \"ls\" is configured", code: 126},
		"prefix only":  {annotation: answers, command: "pg_isready -q", errOut: "no answer", code: 126},
		"nothing said": {command: "ls", errOut: "set the annotation opdock.dev/exec", code: 126},
		"no list":      {annotation: "command: ls", command: "ls", errOut: "not a list of answers", code: 126},
		"unknown":      {annotation: "- {command: ls, exit: 3}", command: "ls", errOut: "not a list of answers", code: 126},
		"exit code":    {annotation: "- {command: ls, exitCode: 300}", command: "ls", errOut: "between 0 and 255", code: 126},
	} {
		t.Run(name, func(t *testing.T) {
			annotations := map[string]string{}
			if test.annotation != "" {
				annotations[ExecAnnotation] = test.annotation
			}
			pod := podWith(annotations)
			e := executor{target{pod: pod, container: "c", status: &pod.Status.ContainerStatuses[0]}}
			var out, errOut buffer
			err := e.ExecInContainer(t.Context(), "", "", "", strings.Fields(test.command), strings.NewReader(test.in), &out, &errOut, false, nil, 0)
			code := 0
			var exit utilexec.CodeExitError
			if errors.As(err, &exit) {
				code = exit.Code
			} else if err != nil {
				t.Fatal(err)
			}
			if code != test.code || out.String() != test.out || !strings.Contains(errOut.String(), test.errOut) {
				t.Errorf("got code %d, %q, %q", code, out.String(), errOut.String())
			}
		})
	}
}

type buffer struct{ strings.Builder }

func (*buffer) Close() error { return nil }

func TestForwardTo(t *testing.T) {
	for name, test := range map[string]struct {
		annotation string
		want, says string
	}{
		"port":       {annotation: "80=9000", want: "127.0.0.1:9000"},
		"address":    {annotation: "443=1, 80=localhost:9000", want: "localhost:9000"},
		"ipv6":       {annotation: "80=[::1]:9000", want: "[::1]:9000"},
		"none":       {says: "leads nowhere"},
		"other port": {annotation: "81=9000", says: "leads nowhere"},
		"elsewhere":  {annotation: "80=10.0.0.1:80", says: "not an address of this machine"},
		"name":       {annotation: "80=example.com:80", says: "not an address of this machine"},
		"no address": {annotation: "80=web", says: "not an address such as"},
		"no port":    {annotation: "web=80", says: "not PORT=ADDRESS"},
	} {
		got, err := forwardTo(test.annotation, 80)
		if got != test.want || (err == nil) != (test.says == "") || (err != nil && !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

func TestPortForward(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		defer connection.Close()
		_, _ = io.Copy(connection, connection)
	}()
	near, far := net.Pipe()
	done := make(chan error, 1)
	pod := podWith(map[string]string{ForwardAnnotation: "80=" + listener.Addr().String()})
	go func() { done <- forwarder{pod}.PortForward(context.Background(), "", "", 80, far) }()
	if _, err := io.WriteString(near, "ping"); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 4)
	if _, err := io.ReadFull(near, got); err != nil || string(got) != "ping" {
		t.Errorf("got %q, %v", got, err)
	}
	_ = near.Close()
	<-done
}
