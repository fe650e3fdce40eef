// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package loopback

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestGuard(t *testing.T) {
	const misdirected, forbidden = http.StatusMisdirectedRequest, http.StatusForbidden
	strict, local, page := Guard{}, Guard{LocalPages: true}, Guard{Document: "/"}
	for name, test := range map[string]struct {
		guard   Guard
		host    string
		headers map[string]string
		want    int
	}{
		"a program":                   {strict, "127.0.0.1:8700", nil, http.StatusOK},
		"by name":                     {strict, "localhost:8700", nil, http.StatusOK},
		"IPv6":                        {strict, "[::1]:8700", nil, http.StatusOK},
		"a name that leads here":      {strict, "evil.example:8700", nil, misdirected},
		"the port of another":         {strict, "127.0.0.1:9000", nil, misdirected},
		"its own page":                {strict, "127.0.0.1:8700", map[string]string{"Origin": "http://127.0.0.1:8700", "Sec-Fetch-Site": "same-origin"}, http.StatusOK},
		"a page from elsewhere":       {strict, "127.0.0.1:8700", map[string]string{"Origin": "https://evil.example"}, forbidden},
		"a page without origin":       {strict, "127.0.0.1:8700", map[string]string{"Origin": "null"}, forbidden},
		"a local page":                {strict, "127.0.0.1:8700", map[string]string{"Origin": "http://127.0.0.1:9000", "Sec-Fetch-Site": "same-site"}, forbidden},
		"a local page that may":       {local, "127.0.0.1:8700", map[string]string{"Origin": "http://127.0.0.1:9000", "Sec-Fetch-Site": "same-site"}, http.StatusOK},
		"an image, where local may":   {local, "127.0.0.1:8700", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, forbidden},
		"a link":                      {page, "127.0.0.1:8700", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, http.StatusOK},
		"a link, where there is none": {strict, "127.0.0.1:8700", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, forbidden},
		"a frame":                     {page, "127.0.0.1:8700", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, forbidden},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8700})))
			r.Host = test.host
			for header, value := range test.headers {
				r.Header.Set(header, value)
			}
			if got, reason := test.guard.Check(r); got != test.want {
				t.Errorf("got %d (%s), want %d", got, reason, test.want)
			}
		})
	}
}

func TestListenOnlyOnLoopback(t *testing.T) {
	var refused *Error
	for _, address := range []string{"0.0.0.0:0", ":0", "192.0.2.1:0", "example.com:0"} {
		if _, err := Listen(t.Context(), address); !errors.As(err, &refused) {
			t.Errorf("%s: %v", address, err)
		}
	}
	listener, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
}
