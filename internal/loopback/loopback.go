// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package loopback is for servers that only this machine may use. Loopback alone does not keep other pages out: a browser asks
// whatever address a page names, under whatever name that address has been given.
package loopback

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// Error means that other machines can reach an address.
type Error struct{ Address string }

func (e *Error) Error() string { return fmt.Sprintf("%q is not a loopback address", e.Address) }

// IsHost reports whether a host, with or without a port, is a name of loopback. What localhost means is up to the machine.
func IsHost(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
	}
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// Listen listens at an address and returns an *Error if others can reach it.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	if !IsHost(address) {
		return nil, &Error{Address: address}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	// A host name can resolve to any address.
	if got, ok := listener.Addr().(*net.TCPAddr); !ok || !got.IP.IsLoopback() {
		listener.Close()
		return nil, &Error{Address: listener.Addr().String()}
	}
	return listener, nil
}

// Guard decides which requests are answered. The zero value lets through what comes from pages of this server, and from
// programs that are no browsers.
type Guard struct {
	// LocalPages also allows pages from other ports of this machine.
	LocalPages bool
	// Document is the path that links of other pages may lead to; empty if there is none.
	Document string
}

// Check returns why a request is not answered, and http.StatusOK if it is.
func (g Guard) Check(r *http.Request) (status int, reason string) {
	const notForOthers = "requests from other origins are not allowed"
	if !g.isOurs(r, r.Host) {
		return http.StatusMisdirectedRequest, "only requests to a loopback address are allowed"
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		from, err := url.Parse(origin)
		if err != nil || from.Scheme != "http" && !g.LocalPages || !g.isOurs(r, from.Host) {
			return http.StatusForbidden, notForOthers
		}
	}
	switch site := r.Header.Get("Sec-Fetch-Site"); {
	case site == "" || site == "same-origin" || site == "none":
	case site == "same-site" && g.LocalPages:
	case g.Document != "" && r.URL.Path == g.Document && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document":
		// Following a link to the page is fine; loading parts of it into another page is not.
	default:
		return http.StatusForbidden, notForOthers
	}
	return http.StatusOK, ""
}

// isOurs reports whether a host is loopback and, unless that does not matter, has the port that the request came to.
func (g Guard) isOurs(r *http.Request, host string) bool {
	if !IsHost(host) || g.LocalPages {
		return IsHost(host)
	}
	_, port, err := net.SplitHostPort(host)
	if err != nil {
		port = "80"
	}
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		if _, ours, err := net.SplitHostPort(local.String()); err != nil || ours != port {
			return false
		}
	}
	return true
}

// Streams bounds how many streams there are at a time, because each of them lasts.
type Streams chan struct{}

// NewStreams allows so many.
func NewStreams(most int) Streams { return make(Streams, most) }

// Limit serves a stream, or refuses it if there are too many already.
func (s Streams) Limit(next http.Handler, refuse http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case s <- struct{}{}:
			defer func() { <-s }()
			next.ServeHTTP(w, r)
		default:
			w.Header().Set("Retry-After", "5")
			refuse(w, r)
		}
	})
}
