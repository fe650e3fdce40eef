// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/rest"

	"github.com/opdock/opdock/internal/pki"
	"github.com/opdock/opdock/internal/testenv"
)

// TestTokensOfOtherAccounts has an operator that requests tokens of service accounts and acts with them. It gets the rights
// of the token alone: neither the certificate of the lens nor the user that the lens impersonates.
func TestTokensOfOtherAccounts(t *testing.T) {
	t.Parallel()
	type arrived struct {
		authorization, as string
		certificates      int
	}
	seen := make(chan arrived, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.Header.Get("Accept"))
		name, isToken := strings.CutSuffix(r.URL.Path, "/token")
		if !isToken {
			seen <- arrived{r.Header.Get("Authorization"), r.Header.Get("Impersonate-User"), len(r.TLS.PeerCertificates)}
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Forbidden","code":403}`)
			return
		}
		answer := &authenticationv1.TokenRequest{
			TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenRequest"},
			Status:   authenticationv1.TokenRequestStatus{Token: "of-" + name[strings.LastIndex(name, "/")+1:]},
		}
		if strings.Contains(name, "refused") {
			w.WriteHeader(http.StatusForbidden)
		} else {
			w.WriteHeader(http.StatusCreated)
		}
		if r.Header.Get("Accept") == runtime.ContentTypeProtobuf {
			_ = protobuf.NewSerializer(nil, nil).Encode(answer, w)
			return
		}
		fmt.Fprintf(w, `{"apiVersion":%q,"kind":%q,"status":{"token":%q}}`, answer.APIVersion, answer.Kind, answer.Status.Token)
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	authority, err := pki.NewAuthority("test", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	admin, err := authority.Client("admin", []string{"system:masters"}, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	upstream := configOf(server)
	upstream.CertData, upstream.KeyData = admin.Certificate, admin.Key
	upstream.Impersonate.UserName = "system:serviceaccount:shop:operator"
	s := newStage(t, Options{Upstream: upstream, User: "system:serviceaccount:shop:operator"}, nil)
	get := func(token string, header ...string) reply {
		t.Helper()
		config := s.lens.Config()
		config.BearerToken = token
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		with := &stage{t, s.lens, client}
		return with.request(http.MethodGet, "/api/v1/namespaces/a/configmaps/x", "", append(header, "Accept", "application/json")...)
	}
	for kind, name := range map[string]string{runtime.ContentTypeJSON: "one", runtime.ContentTypeProtobuf: "two"} {
		if got := get("of-" + name); got.StatusCode != http.StatusUnauthorized {
			t.Fatalf("a token that was not requested yet is answered with %s", got.Status)
		}
		answer := s.read(s.request(http.MethodPost, "/api/v1/namespaces/a/serviceaccounts/"+name+"/token", `{}`, "Content-Type", "application/json", "Accept", kind))
		if !strings.Contains(answer, "of-"+name) {
			t.Errorf("the answer is %q", answer)
		}
		if got := get("of-" + name); got.StatusCode != http.StatusForbidden {
			t.Fatalf("a request with the token is answered with %s", got.Status)
		}
		if got := <-seen; got != (arrived{"Bearer of-" + name, "", 0}) {
			t.Fatalf("the API server got %+v", got)
		}
	}
	get("of-one", "Impersonate-User", "somebody")
	if got := <-seen; got != (arrived{"Bearer of-one", "somebody", 0}) {
		t.Errorf("the API server got %+v", got)
	}
	get(s.lens.token)
	if got := <-seen; got != (arrived{"", "system:serviceaccount:shop:operator", 1}) {
		t.Errorf("of the operator itself, the API server got %+v", got)
	}
	s.read(s.request(http.MethodPost, "/api/v1/namespaces/a/serviceaccounts/refused/token", `{}`, "Content-Type", "application/json", "Accept", "application/json"))
	if got := get("of-refused"); got.StatusCode != http.StatusUnauthorized {
		t.Errorf("a token that was refused is answered with %s", got.Status)
	}
	// Its own token is forwarded like the others, but what it does with it needs its own rights.
	s.read(s.request(http.MethodPost, "/api/v1/namespaces/shop/serviceaccounts/operator/token", `{}`, "Content-Type", "application/json", "Accept", "application/json"))
	get("of-operator", "User-Agent", "own")
	if got := <-seen; got != (arrived{"Bearer of-operator", "", 0}) {
		t.Errorf("with its own token, the API server got %+v", got)
	}
	if err := s.lens.Forward(upstream, "system:serviceaccount:a:one"); err != nil {
		t.Fatal(err)
	}
	get("of-one", "User-Agent", "own")
	if got := <-seen; got != (arrived{"Bearer of-one", "", 0}) {
		t.Errorf("with the token of its next identity, the API server got %+v", got)
	}
	testenv.Eventually(t, "the requests with tokens are in the stream", func() error {
		var users []string
		own := 0
		for _, e := range s.events() {
			if r := e.Request; r != nil && r.UserAgent == "own" {
				own++
				if r.ByToken || r.As != "" || !r.RefusedSender() {
					t.Fatalf("the operator does not need the rights for %+v", r)
				}
			}
			if r := e.Request; r != nil && r.ByToken {
				users = append(users, r.As)
				if len(r.impliedOfSender()) > 0 || r.RefusedSender() {
					t.Errorf("the operator needs rights for %+v", r)
				}
			}
		}
		slices.Sort(users)
		if want := []string{"somebody", "system:serviceaccount:a:one", "system:serviceaccount:a:two"}; !slices.Equal(users, want) {
			return fmt.Errorf("they were sent as %q", users)
		}
		if own != 2 {
			return fmt.Errorf("%d requests were sent with the token of the operator itself", own)
		}
		return nil
	})
}

func TestTokensTakeNoRoom(t *testing.T) {
	t.Parallel()
	var all tokens
	userOf := func(token string) string {
		return all.userOf(&http.Request{Header: http.Header{"Authorization": {"Bearer " + token}}})
	}
	for i := range keptTokens + 2 {
		all.add(fmt.Sprint("token-", i), fmt.Sprint("user-", i))
		all.add(fmt.Sprint("token-", i), fmt.Sprint("user-", i))
	}
	if len(all.users) != keptTokens || len(all.order) != keptTokens {
		t.Errorf("%d tokens are kept", len(all.users))
	}
	for token, want := range map[string]string{"token-1": "", "token-2": "user-2", fmt.Sprint("token-", keptTokens+1): fmt.Sprint("user-", keptTokens+1), "": ""} {
		if got := userOf(token); got != want {
			t.Errorf("%q is of %q", token, got)
		}
	}
	if all.userOf(&http.Request{Header: http.Header{"Authorization": {"token-2"}}}) != "" {
		t.Error("a token without its scheme is accepted")
	}
}
