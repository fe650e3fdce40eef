// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"bytes"
	"crypto/sha256"
	"io"
	"net/http"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// keptTokens is how many tokens are accepted. Clients request one again when it is about to expire.
const keptTokens = 1 << 10

// tokens are those that the operator has requested for service accounts through the lens, as hashes. Some operators act for
// a tenant with a token of the tenant's account.
type tokens struct {
	mutex sync.Mutex
	users map[[sha256.Size]byte]string
	order [][sha256.Size]byte // oldest first, from next on
	next  int
}

func (t *tokens) add(token, user string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.users == nil {
		t.users = map[[sha256.Size]byte]string{}
	}
	hash := sha256.Sum256([]byte(token))
	switch _, known := t.users[hash]; {
	case known:
	case len(t.order) < keptTokens:
		t.order = append(t.order, hash)
	default:
		delete(t.users, t.order[t.next])
		t.order[t.next] = hash
		t.next = (t.next + 1) % keptTokens
	}
	t.users[hash] = user
}

// userOf returns the service account whose token a request has; empty if it is none of them.
func (t *tokens) userOf(r *http.Request) string {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return ""
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.users[sha256.Sum256([]byte(token))]
}

// learnToken reads the answer to a request for a token before the client gets it, which may use the token at once.
func (x *exchange) learnToken(response *http.Response, as encoding) {
	place := x.Request.Resource
	if x.Request.Verb != "create" || place.Group != "" || place.Resource != "serviceaccounts" || place.Subresource != "token" || response.StatusCode != http.StatusCreated {
		return
	}
	body := response.Body
	data, err := io.ReadAll(io.LimitReader(body, maxErrorText))
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(data), body), body}
	if err != nil {
		return // reading on fails again
	}
	plain, err := inflate(data, x.compression)
	if err != nil {
		return
	}
	answer, err := decode(plain, as)
	if err != nil {
		return
	}
	if token, _, _ := unstructured.NestedString(asUnstructured(answer).Object, "status", "token"); token != "" {
		x.lens.tokens.add(token, serviceAccountPrefix+place.Namespace+":"+place.Name)
	}
}
