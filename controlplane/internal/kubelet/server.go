// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubelet answers for the kubelets of all simulated nodes when the API
// server asks them on behalf of a user: for logs, exec, attach and
// port-forward. There are no containers, so annotations of the pod say what is
// answered; docs/behaviours.md describes them.
package kubelet

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/klog/v2"

	"github.com/opdock/opdock/controlplane/internal/nodes"
	"github.com/opdock/opdock/controlplane/internal/pki"
)

const (
	// certificateLife is longer than any process runs.
	certificateLife = 3 * 365 * 24 * time.Hour
	// idleTimeout and creationTimeout are the same as a kubelet's.
	idleTimeout     = 4 * time.Hour
	creationTimeout = 30 * time.Second
)

// Server answers requests that the API server sends to kubelets. It has no
// address: the API server reaches it through Dial, and no other client can.
type Server struct {
	pods  corelisters.PodLister
	nodes corelisters.NodeLister
	// logs is the folder in which users put log files of pods; empty if there is none.
	logs string

	listener *socketPairs
	server   *http.Server
}

// New returns a server for the pods of a cluster.
func New(pods corelisters.PodLister, nodes corelisters.NodeLister, logs string) (*Server, error) {
	pair, err := pki.SelfSigned("kubelet", certificateLife)
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
	if err != nil {
		return nil, fmt.Errorf("certificate of the simulated kubelets: %w", err)
	}
	s := &Server{pods: pods, nodes: nodes, logs: logs, listener: newSocketPairs()}
	s.server = &http.Server{Handler: s.handler(), ReadHeaderTimeout: creationTimeout}
	go func() {
		// Upgrades of connections need HTTP/1.1, which is all that this listener speaks.
		secure := tls.NewListener(s.listener, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12})
		if err := s.server.Serve(secure); !errors.Is(err, http.ErrServerClosed) {
			klog.ErrorS(err, "The simulated kubelets have stopped serving")
		}
	}()
	return s, nil
}

// Dial connects to the server, whichever node is meant.
func (s *Server) Dial(context.Context, string, string) (net.Conn, error) { return s.listener.dial() }

// Close ends the server and all its connections.
func (s *Server) Close() { _ = s.server.Close() }

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", s.forContainer(s.serveLogs))
	for _, path := range []string{"/{namespace}/{pod}/{container}", "/{namespace}/{pod}/{uid}/{container}"} {
		mux.HandleFunc("/exec"+path, s.forContainer(s.serveExec))
		mux.HandleFunc("/attach"+path, s.forContainer(s.serveAttach))
	}
	for _, path := range []string{"/portForward/{namespace}/{pod}", "/portForward/{namespace}/{pod}/{uid}"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if pod, found := s.pod(w, r); found {
				s.servePortForward(w, r, pod)
			}
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "the node is simulated and does not serve "+r.URL.Path, http.StatusNotFound)
	})
	return mux
}

func (s *Server) pod(w http.ResponseWriter, r *http.Request) (*corev1.Pod, bool) {
	pod, err := s.pods.Pods(r.PathValue("namespace")).Get(r.PathValue("pod"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return nil, false
	}
	if node, err := s.nodes.Get(pod.Spec.NodeName); err != nil || nodes.IsLost(node) {
		http.Error(w, fmt.Sprintf("node %s does not respond", pod.Spec.NodeName), http.StatusServiceUnavailable)
		return nil, false
	}
	return pod, true
}

// forContainer finds the pod and the container that a request names.
func (s *Server) forContainer(serve func(http.ResponseWriter, *http.Request, target)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		pod, found := s.pod(w, r)
		if !found {
			return
		}
		name := r.PathValue("container")
		for _, list := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses, pod.Status.EphemeralContainerStatuses} {
			for i := range list {
				if list[i].Name == name {
					serve(w, r, target{pod: pod, container: name, status: &list[i]})
					return
				}
			}
		}
		http.Error(w, fmt.Sprintf("container %s is not available in pod %s", name, pod.Name), http.StatusBadRequest)
	}
}

// target is a container and what is known about it.
type target struct {
	pod       *corev1.Pod
	container string
	status    *corev1.ContainerStatus
}

func (t target) started() time.Time {
	switch state := t.status.State; {
	case state.Running != nil:
		return state.Running.StartedAt.Time
	case state.Terminated != nil:
		return state.Terminated.StartedAt.Time
	default:
		return t.pod.CreationTimestamp.Time
	}
}

// annotation returns the value of an annotation for this container: one whose name ends in a dot and the name of the
// container, else the one for all containers.
func (t target) annotation(name string) (string, bool) {
	if value, found := t.pod.Annotations[name+"."+t.container]; found {
		return value, true
	}
	value, found := t.pod.Annotations[name]
	return value, found
}

func (s *Server) serveExec(w http.ResponseWriter, r *http.Request, t target) {
	if t.status.State.Running == nil {
		http.Error(w, fmt.Sprintf("container %s of pod %s is not running", t.container, t.pod.Name), http.StatusBadRequest)
		return
	}
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	remotecommand.ServeExec(w, r, executor{t}, t.pod.Name, string(t.pod.UID), t.container, r.URL.Query()["command"], options,
		idleTimeout, creationTimeout, remotecommand.SupportedStreamingProtocols)
}

func (s *Server) serveAttach(w http.ResponseWriter, r *http.Request, t target) {
	if t.status.State.Running == nil {
		http.Error(w, fmt.Sprintf("container %s of pod %s is not running", t.container, t.pod.Name), http.StatusBadRequest)
		return
	}
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	remotecommand.ServeAttach(w, r, attacher{s, t}, t.pod.Name, string(t.pod.UID), t.container, options,
		idleTimeout, creationTimeout, remotecommand.SupportedStreamingProtocols)
}

func (s *Server) servePortForward(w http.ResponseWriter, r *http.Request, pod *corev1.Pod) {
	options, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(w, r, forwarder{pod}, pod.Name, string(pod.UID), options, idleTimeout, creationTimeout, portforward.SupportedProtocols)
}

// socketPairs is a listener without an address. Each connection is a pair of sockets that only this process has.
type socketPairs struct {
	incoming chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

func newSocketPairs() *socketPairs {
	return &socketPairs{incoming: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *socketPairs) dial() (net.Conn, error) {
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	var connections [2]net.Conn
	for i, end := range ends {
		syscall.CloseOnExec(end)
		file := os.NewFile(uintptr(end), "kubelet")
		connections[i], err = net.FileConn(file)
		_ = file.Close()
		if err != nil {
			return nil, fmt.Errorf("connecting to a simulated kubelet: %w", err)
		}
	}
	select {
	case l.incoming <- connections[0]:
		return connections[1], nil
	case <-l.closed:
		_ = connections[0].Close()
		_ = connections[1].Close()
		return nil, net.ErrClosed
	}
}

func (l *socketPairs) Accept() (net.Conn, error) {
	select {
	case connection := <-l.incoming:
		return connection, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *socketPairs) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *socketPairs) Addr() net.Addr { return &net.UnixAddr{Name: "kubelet", Net: "unix"} }
