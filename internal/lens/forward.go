// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// upstream is an API server and how to reach it as an identity.
type upstream struct {
	base *url.URL
	// shared sends many requests at a time over one connection, and alone only one, with HTTP/1.1.
	shared, alone http.RoundTripper
	isNear        bool
	impersonates  bool
	user          string // the name of the identity; empty if it is unknown
	// anonymous is the same API server without the identity, for clients that have a token of their own.
	anonymous *upstream
}

func newUpstream(config *rest.Config, isNear bool) (*upstream, error) {
	config = rest.CopyConfig(config)
	// The client's own Accept-Encoding decides. Bodies are passed on as they come.
	config.DisableCompression = true
	config.Timeout = 0
	u, err := connect(config, isNear)
	if err != nil {
		return nil, err
	}
	u.anonymous, err = connect(rest.AnonymousClientConfig(config), isNear)
	return u, err
}

// connect prepares connections to an API server, as the identity of a configuration.
func connect(config *rest.Config, isNear bool) (*upstream, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("the address of the API server is invalid: %w", err)
	}
	u := &upstream{base: base, isNear: isNear, impersonates: config.Impersonate.UserName != ""}
	if u.shared, err = rest.TransportFor(config); err != nil {
		return nil, fmt.Errorf("connecting the lens to the API server: %w", err)
	}
	old := rest.CopyConfig(config)
	old.NextProtos = []string{"http/1.1"}
	if u.alone, err = rest.TransportFor(old); err != nil {
		return nil, fmt.Errorf("connecting the lens to the API server: %w", err)
	}
	return u, nil
}

// RoundTrip implements http.RoundTripper.
func (u *upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Upgrade") != "" || u.isNear && 0 <= r.ContentLength && r.ContentLength <= maxAlone {
		return u.alone.RoundTrip(r)
	}
	return u.shared.RoundTrip(r)
}

// maxAlone is the largest body that is sent to a near API server with HTTP/1.1, which takes both sides less CPU time than HTTP/2.
// If the server closes the connection without reading a large body to its end, its answer may be lost.
const maxAlone = 1 << 20

// ServeHTTP implements http.Handler.
func (l *Lens) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	to, user := l.upstream.Load(), ""
	ofIdentity := true // its rights are used
	if !l.isClient(r) {
		if user = l.tokens.userOf(r); user == "" {
			l.strangers.Add(1)
			answer(w, status(http.StatusUnauthorized, metav1.StatusReasonUnauthorized,
				"this proxy serves one operator and accepts only the credential in its kubeconfig, and tokens of service accounts that were requested with it"), nil)
			return
		}
		to, ofIdentity = to.anonymous, user == to.user
	}
	l.usedOnce.Do(func() { close(l.used) })
	x := &exchange{lens: l, to: to, began: time.Now(), Call: Call{Request: describe(r)}}
	x.Request.ID = l.lastID.Add(1)
	x.keepsToken = user != ""
	if !ofIdentity {
		x.Request.ByToken, x.Request.As = true, cmp.Or(x.Request.As, user)
	}
	if to.impersonates && hasImpersonation(r.Header) {
		// The server would combine the header with the impersonation of the identity, and would give the client the
		// rights of any user that it names.
		x.refuse(w, status(http.StatusForbidden, metav1.StatusReasonForbidden, "the lens already impersonates a user, so its client cannot"), nil)
		return
	}
	x.serve(w, r)
}

func hasImpersonation(header http.Header) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(header)), func(name string) bool { return strings.HasPrefix(name, "Impersonate-") })
}

// exchange is one request and its answer.
type exchange struct {
	Call

	lens  *Lens
	to    *upstream
	began time.Time
	sent  *capture // the request's body
	got   *capture // the answer's

	flushes                  time.Duration // how long a part of the answer may wait; negative: not at all
	contentType, compression string        // of the answer
	asOf                     string        // the resource version that Faults set for a list; empty for the client's own
	requestType              string
	upgraded                 bool // the answer was to switch protocols
	streams                  bool // the body of the request is forwarded while it arrives
	keepsToken               bool // the client's own token goes to the API server

	// delivered are the objects of a list that fills a cache. They belong to the observer.
	delivered []*Delivery
}

func (x *exchange) serve(w http.ResponseWriter, r *http.Request) {
	x.requestType = r.Header.Get("Content-Type")
	// The server looks at the body of its own request to decide whether its connection can be used again.
	r = r.WithContext(r.Context())
	if r.Body != nil && r.Body != http.NoBody && !x.isUpgrade(r) {
		x.sent = x.captureSent()
		if err := x.readAhead(w, r); err != nil {
			panic(http.ErrAbortHandler)
		}
		x.readDryRun()
	}
	if faults := x.lens.faults; faults != nil {
		x.Body = x.decodeSent
		if x.apply(w, faults.Request(r.Context(), &x.Call)) {
			return
		}
	}
	// ReverseProxy flushes responses of unknown length, such as watches, after each read.
	proxy := httputil.ReverseProxy{
		FlushInterval:  x.flushes,
		Rewrite:        func(p *httputil.ProxyRequest) { x.rewrite(p) },
		Transport:      x.transport(),
		ModifyResponse: func(response *http.Response) error { return x.answered(r.Context(), response) },
		ErrorHandler:   func(w http.ResponseWriter, r *http.Request, err error) { x.failed(w, r, err) },
		ErrorLog:       x.lens.server.ErrorLog,
		BufferPool:     buffers{},
	}
	proxy.ServeHTTP(w, r)
}

// transport forwards the request.
func (x *exchange) transport() http.RoundTripper {
	if x.streams {
		return abandoning{x.to}
	}
	return x.to
}

// abandoning is a transport that need not read the body of a request to its end. A transport ends a request only when it no longer
// reads the body, and a client that has an early answer sends no more of it until the request has ended. ReverseProxy hides that the
// transport closes the body, so each would wait for the other.
type abandoning struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (a abandoning) RoundTrip(r *http.Request) (*http.Response, error) {
	body, arrives := io.Pipe()
	go func(from io.Reader) {
		_, err := io.Copy(arrives, from)
		_ = arrives.CloseWithError(err) // which is io.EOF without an error
	}(r.Body)
	r = r.WithContext(r.Context())
	r.Body = body
	return a.next.RoundTrip(r)
}

// readAhead reads the body of a write before it is forwarded. The API server may refuse a write before it has read
// the body, and such an early response must not depend on what the client still has to send. Only a body that is too
// large for an object is copied while it is forwarded, unless Faults need it.
func (x *exchange) readAhead(w http.ResponseWriter, r *http.Request) error {
	if x.lens.faults == nil && (r.ContentLength < 0 || r.ContentLength > maxRequest) {
		// Otherwise the server reads the rest of the body itself before it passes on the beginning of an answer.
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return err
		}
		if r.ProtoMajor == 1 {
			// If the answer ends first, the rest of the body must not be read as the next request.
			w.Header().Set("Connection", "close")
		}
		x.flushes = -1 // A client may wait for an answer before it sends the rest.
		x.streams = true
		r.Body = &tapped{ReadCloser: r.Body, see: x.sent.write}
		return nil
	}
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	x.sent.write(data)
	// The transport sends a body again if the connection ends before the server has handled the request, as it would
	// for a client without the lens.
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	r.Body, err = r.GetBody()
	return err
}

func (x *exchange) isUpgrade(r *http.Request) bool { return r.Header.Get("Upgrade") != "" }

func (x *exchange) rewrite(p *httputil.ProxyRequest) {
	out := p.Out
	out.URL.Scheme, out.URL.Host = x.to.base.Scheme, x.to.base.Host
	out.URL.Path = strings.TrimSuffix(x.to.base.Path, "/") + p.In.URL.Path
	out.URL.RawPath = ""
	if p.In.URL.RawPath != "" {
		out.URL.RawPath = strings.TrimSuffix(x.to.base.EscapedPath(), "/") + p.In.URL.RawPath
	}
	out.URL.RawQuery = p.In.URL.RawQuery // unchanged, even if ReverseProxy would drop what it cannot parse
	if x.asOf != "" {
		query := p.In.URL.Query()
		query.Set("resourceVersion", x.asOf)
		query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
		out.URL.RawQuery = query.Encode()
	}
	out.Host = ""
	// The transport has the identity. ReverseProxy has removed what concerns only the connection, and Upgrade is back.
	if !x.keepsToken {
		out.Header.Del("Authorization")
	}
	out.Header.Del(ReconcileHeader)
	out.Header.Del(SourceHeader)
}

// answered handles a response that begins to arrive.
func (x *exchange) answered(ctx context.Context, response *http.Response) error {
	x.Request.Status, x.Request.Wait = response.StatusCode, time.Since(x.began)
	if faults := x.lens.faults; faults != nil {
		verdict := faults.Answer(ctx, &x.Call, response.StatusCode)
		if verdict.Action != Pass {
			return &interfered{verdict}
		}
		if verdict.Say != "" {
			x.Request.Fault = verdict.Say
		}
	}
	if response.StatusCode == http.StatusSwitchingProtocols {
		x.Request.Implies = append(x.Request.Implies, impliedByUpgrade(&x.Request)...)
		x.upgraded = true
		x.finish(nil) // the rest of the connection is not recorded
		return nil
	}
	x.contentType, x.compression = response.Header.Get("Content-Type"), response.Header.Get("Content-Encoding")
	as, mediaType := encodingOf(x.contentType)
	x.Request.Encoding = mediaType
	if x.Request.Verb == "watch" && response.StatusCode == http.StatusOK {
		x.lens.observer.emit(Event{At: x.began, Request: x.opened()})
		response.Body = x.watch(ctx, as, response)
		return nil
	}
	x.learnToken(response, as)
	x.got = x.captureAnswer(as)
	response.Body = &tapped{ReadCloser: response.Body, see: x.got.write, ended: x.finish}
	return nil
}

// captureSent copies the body of a request, unless it is for a container or another server.
func (x *exchange) captureSent() *capture {
	if isConversation(x.Request.Resource.Subresource) {
		return x.lens.observer.newCount(noObject)
	}
	return x.lens.observer.newCapture(maxRequest)
}

// captureAnswer copies an answer if it will be decoded. Others may last as long as the operator, such as a log that it
// follows, and a copy would take the room of all other traffic.
func (x *exchange) captureAnswer(as encoding) *capture {
	observer := x.lens.observer
	switch {
	case !x.Request.answersObject():
		return observer.newCount(noObject)
	case isConversation(x.Request.Resource.Subresource):
		if as == encodedOther {
			return observer.newCount(noObject)
		}
		return observer.newCapture(maxErrorText)
	case as != encodedOther:
		return observer.newCapture(maxAnswer)
	case x.Request.Status >= http.StatusBadRequest:
		return observer.newCapture(maxErrorText)
	}
	return observer.newCount(unknownEncoding)
}

func (x *exchange) opened() *Request {
	open := x.Request
	open.Open, open.Duration = true, open.Wait
	return &open
}

// interfered is an answer that Faults replaced.
type interfered struct{ verdict Verdict }

func (i *interfered) Error() string { return "the answer was replaced: " + i.verdict.Say }

// failed handles a request without a response from the API server. If it cannot have arrived there, the client gets
// an error. Otherwise it is unknown whether it took effect, and the connection is aborted, as it would be without the
// lens.
func (x *exchange) failed(w http.ResponseWriter, r *http.Request, err error) {
	var replaced *interfered
	if errors.As(err, &replaced) {
		x.apply(w, replaced.verdict)
		return
	}
	if x.upgraded {
		panic(http.ErrAbortHandler) // the request belongs to the observer
	}
	x.Request.Error = err.Error()
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" && r.Context().Err() == nil {
		code, reason := http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable
		if x.Request.Verb == "watch" {
			// After 429, an informer resumes its watch, as it does if it cannot connect. After any other error, it lists everything again.
			code, reason = http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests
		}
		x.refuse(w, status(code, reason, "the API server is not available: "+err.Error()), nil)
		return
	}
	x.finish(nil)
	panic(http.ErrAbortHandler)
}

// apply carries out the decision of Faults, and reports whether that ends the request.
func (x *exchange) apply(w http.ResponseWriter, v Verdict) bool {
	if v.Say != "" {
		x.Request.Fault = v.Say
	}
	if x.Request.Verb == "list" {
		x.asOf = v.AsOf
	}
	switch v.Action {
	case Refuse:
		x.refuse(w, v.Answer, v.Header)
		return true
	case Abort, End, Drop:
		x.Request.Error = "aborted"
		x.finish(nil)
		panic(http.ErrAbortHandler)
	}
	return false
}

// refuse answers in place of the API server.
func (x *exchange) refuse(w http.ResponseWriter, s *metav1.Status, header http.Header) {
	x.Request.Status, x.Request.Reason, x.Request.Message = int(s.Code), string(s.Reason), s.Message
	if x.Request.Fault == "" {
		x.Request.Fault = "answered by the lens"
	}
	answer(w, s, header)
	x.finish(nil)
}

func answer(w http.ResponseWriter, s *metav1.Status, header http.Header) {
	maps.Copy(w.Header(), header)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(s.Code))
	_ = json.NewEncoder(w).Encode(s) // the client may have disconnected
}

// finish passes a completed request to the observer.
func (x *exchange) finish(err error) {
	if err != nil && !errors.Is(err, io.EOF) {
		x.Request.Error = err.Error()
	}
	x.Request.Duration = time.Since(x.began)
	x.lens.observer.observeExchange(x)
}
