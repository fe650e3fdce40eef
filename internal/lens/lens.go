// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/opdock/opdock/internal/loopback"
	"github.com/opdock/opdock/internal/pki"
)

// Options configures a lens. Only Upstream is required.
type Options struct {
	// Upstream is the API server, and the identity that requests are forwarded as.
	Upstream *rest.Config
	// User is the name of the user that Upstream acts as; empty if it is unknown. Requests with a token of the same user count
	// like all others, because they need its rights.
	User string
	// Near means that the API server is a process on this machine, and no tunnel to another one. Its connections end when it ends,
	// so they need no health checks, which only HTTP/2 has.
	Near bool
	// Namespace is the one of the context in the client's kubeconfig.
	Namespace string
	// Faults disturbs what passes; nil for nothing.
	Faults Faults
	// MaxPending limits the bytes of copies that wait to be decoded, MaxRemembered the bytes of
	// objects that are kept to find changes, and MaxKept the bytes of events that are kept for
	// readers of the stream.
	MaxPending, MaxRemembered, MaxKept int64
}

const (
	defaultPending    = 64 << 20
	defaultRemembered = 64 << 20
	defaultKept       = 32 << 20
	// certificateLife is longer than any session of a lens.
	certificateLife = 365 * 24 * time.Hour
	closeGrace      = 2 * time.Second
	// headerTimeout is longer than Go's clients keep a spare connection open that they have not used yet.
	headerTimeout = 2 * time.Minute
)

// Lens is a running proxy.
type Lens struct {
	stream    *Stream
	observer  *observer
	server    *http.Server
	hooks     *hooks
	token     string
	authority []byte
	address   string
	namespace string
	near      bool
	faults    Faults
	tokens    tokens

	upstream  atomic.Pointer[upstream]
	lastID    atomic.Uint64
	used      chan struct{}
	usedOnce  sync.Once
	strangers atomic.Uint64

	closing context.CancelFunc
	done    chan struct{}
	close   func() error
}

// Start starts a lens on a loopback port.
func Start(ctx context.Context, o Options) (*Lens, error) {
	l := &Lens{namespace: o.Namespace, near: o.Near, faults: o.Faults, used: make(chan struct{}), done: make(chan struct{})}
	l.close = sync.OnceValue(l.end)
	if err := l.Forward(o.Upstream, o.User); err != nil {
		return nil, err
	}
	token, err := newToken()
	if err != nil {
		return nil, err
	}
	l.token = token
	certificate, err := l.certify()
	if err != nil {
		return nil, err
	}
	listener, err := loopback.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the lens: %w", err)
	}
	l.address = listener.Addr().String()
	l.stream = newStream(orDefault(o.MaxKept, defaultKept))
	l.observer = newObserver(l.stream, orDefault(o.MaxPending, defaultPending), orDefault(o.MaxRemembered, defaultRemembered))
	if l.hooks, err = listenForHooks(ctx, l.observer.emit); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l.closing = cancel
	l.server = &http.Server{
		Handler: l, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12, NextProtos: protocols(o.Faults != nil)},
		ReadHeaderTimeout: headerTimeout, BaseContext: func(net.Listener) context.Context { return serving },
		// Clients that hang up are everyday; what matters is in the stream.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	go func() {
		defer close(l.done)
		_ = l.server.ServeTLS(listener, "", "") // it ends by Close
	}()
	return l, nil
}

// protocols returns the protocols that the lens offers, the preferred one first. Clients that know both get HTTP/1.1, because it
// takes the lens less CPU time. With Faults they get HTTP/2, as from the API server: with HTTP/1.1, an answer that does not arrive
// would end its connection, and clients then repeat some requests by themselves.
func protocols(disturbed bool) []string {
	if disturbed {
		return []string{"h2", "http/1.1"}
	}
	return []string{"http/1.1", "h2"}
}

func orDefault(given, otherwise int64) int64 {
	if given > 0 {
		return given
	}
	return otherwise
}

func newToken() (string, error) {
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return "", fmt.Errorf("making a credential for the lens: %w", err)
	}
	return hex.EncodeToString(secret), nil
}

// certify creates a certificate that only the clients of this lens trust.
func (l *Lens) certify() (certificate tls.Certificate, err error) {
	authority, err := pki.NewAuthority("opdock-lens", time.Now(), certificateLife)
	if err != nil {
		return certificate, err
	}
	pair, err := authority.Loopback(time.Now(), certificateLife)
	if err != nil {
		return certificate, err
	}
	l.authority = authority.Certificate
	certificate, err = tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		return certificate, fmt.Errorf("making a certificate for the lens: %w", err)
	}
	return certificate, nil
}

// Forward sets the API server and the identity that the lens uses, from the next request on. User is the name of that identity;
// empty if it is unknown. Open watches continue.
func (l *Lens) Forward(config *rest.Config, user string) error {
	next, err := newUpstream(config, l.near && l.faults == nil)
	if err != nil {
		return err
	}
	next.user = user
	l.upstream.Store(next)
	return nil
}

// Config returns the configuration of a Go client that uses the lens.
func (l *Lens) Config() *rest.Config {
	return &rest.Config{
		Host: "https://" + l.address, BearerToken: l.token, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: l.authority},
	}
}

// Kubeconfig returns a kubeconfig for the lens.
func (l *Lens) Kubeconfig() ([]byte, error) {
	const name = "opdock-lens"
	return clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: "https://" + l.address, CertificateAuthorityData: l.authority}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: l.token}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name, Namespace: l.namespace}},
		CurrentContext: name,
	})
}

// Environment returns the variables that lead a program to a kubeconfig. Without a service address, the program does not
// take this machine for a pod of another cluster.
func Environment(kubeconfig string) []string {
	return []string{
		"KUBECONFIG=" + kubeconfig, otherKubeconfig + "=" + kubeconfig, KubeconfigVariable + "=" + kubeconfig,
		"KUBERNETES_SERVICE_HOST=", "KUBERNETES_SERVICE_PORT=",
	}
}

// KubeconfigVariable leads `opdock kubectl` through the lens. It does not read KUBECONFIG, which may lead to a cluster
// that was not meant.
const KubeconfigVariable = "OPDOCK_KUBECONFIG"

// otherKubeconfig is a variable that some operators read instead of KUBECONFIG, such as rabbitmq's.
const otherKubeconfig = "KUBE_CONFIG"

// HookAddress returns the value of HookVariable for an operator that marks its reconciles.
func (l *Lens) HookAddress() string { return l.hooks.address() }

// Stream returns the events of the lens.
func (l *Lens) Stream() *Stream { return l.stream }

// Used returns a channel that is closed when the first request of the operator has arrived.
func (l *Lens) Used() <-chan struct{} { return l.used }

// Strangers returns the number of requests that were refused because they had another credential or none.
func (l *Lens) Strangers() uint64 { return l.strangers.Load() }

// Note adds an event that the lens cannot see itself.
func (l *Lens) Note(e Event) { l.observer.emit(e) }

// Flush waits until everything that has passed so far is in the stream.
func (l *Lens) Flush(ctx context.Context) error { return l.observer.flush(ctx) }

// Close ends all requests and watches, and returns when everything that passed is in the stream. It can be called again.
func (l *Lens) Close() error { return l.close() }

func (l *Lens) end() error {
	l.closing()
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	err := l.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = l.server.Close()
	}
	<-l.done
	err = errors.Join(err, l.hooks.close())
	l.observer.close()
	return err
}

// isClient reports whether a request has the credential of the lens.
func (l *Lens) isClient(r *http.Request) bool {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && subtle.ConstantTimeCompare([]byte(token), []byte(l.token)) == 1
}

// status is an answer in the words of the API server.
func status(code int, reason metav1.StatusReason, message string) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: message, //nolint:gosec // an HTTP status
	}
}
