// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"net"
	"net/http"
	"net/url"
	"strings"
)

// policy lets the page load what this server has and nothing else, and lets no script become one from a string.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

func protect(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
}

// check says whether a request may be answered, and why not. Loopback alone does not keep other pages out: a browser asks
// whatever address a page names, under whatever name that address has been given.
func check(r *http.Request) (status int, reason string) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return http.StatusMethodNotAllowed, "there is nothing to change here"
	}
	if !isOurHost(r, r.Host) {
		return http.StatusMisdirectedRequest, "this is reached by a loopback address only"
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		from, err := url.Parse(origin)
		if err != nil || from.Scheme != "http" || !isOurHost(r, from.Host) {
			return http.StatusForbidden, "this is not for other pages"
		}
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
	default:
		// Following a link to the page is fine; loading parts of it into another page is not.
		if r.URL.Path != "/" || r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document" {
			return http.StatusForbidden, "this is not for other pages"
		}
	}
	return http.StatusOK, ""
}

// isOurHost says whether a name is one of loopback, with the port that the request came to.
func isOurHost(r *http.Request, host string) bool {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = strings.Trim(host, "[]"), "80"
	}
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		if _, ours, err := net.SplitHostPort(local.String()); err != nil || ours != port {
			return false
		}
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	ip := net.ParseIP(name)
	return ip != nil && ip.IsLoopback()
}
