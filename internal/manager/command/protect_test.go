// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	testclock "k8s.io/utils/clock/testing"
)

// reviewer answers as an API server that knows two tokens, of whom one may get /metrics.
type reviewer struct {
	tokens, accesses int
	broken           error
}

func (r *reviewer) protection(clock cache.Clock) *protection {
	client := fake.NewClientset()
	client.PrependReactor("create", "tokenreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		r.tokens++
		review := action.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview)
		if user, known := map[string]string{"good": "prometheus", "weak": "somebody"}[review.Spec.Token]; known {
			review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{
				Username: user, Groups: []string{"g"}, Extra: map[string]authenticationv1.ExtraValue{"pod": {"p"}},
			}}
		}
		return true, review, r.broken
	})
	client.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		r.accesses++
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
		asked := review.Spec.NonResourceAttributes
		review.Status.Allowed = review.Spec.User == "prometheus" && review.Spec.Groups[0] == "g" && review.Spec.Extra["pod"][0] == "p" &&
			asked != nil && asked.Verb == "get" && asked.Path == "/metrics"
		return true, review, nil
	})
	p := newProtection(client.AuthenticationV1().TokenReviews(), client.AuthorizationV1().SubjectAccessReviews())
	p.answers = cache.NewLRUExpireCacheWithClock(maxAnswers, clock)
	return p
}

func ask(t *testing.T, p *protection, method, path, authorization string) int {
	t.Helper()
	handler, err := p.filter(logr.Discard(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	if err != nil {
		t.Fatal(err)
	}
	request := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder.Code
}

func TestRightToReadMetrics(t *testing.T) {
	for name, test := range map[string]struct {
		method, path, authorization string
		want                        int
	}{
		"allowed":              {"GET", "/metrics", "Bearer good", http.StatusOK},
		"scheme in any case":   {"GET", "/metrics", "bearer good", http.StatusOK},
		"no token":             {"GET", "/metrics", "", http.StatusUnauthorized},
		"an empty token":       {"GET", "/metrics", "Bearer ", http.StatusUnauthorized},
		"another scheme":       {"GET", "/metrics", "Basic good", http.StatusUnauthorized},
		"an unknown token":     {"GET", "/metrics", "Bearer bad", http.StatusUnauthorized},
		"a user without right": {"GET", "/metrics", "Bearer weak", http.StatusForbidden},
		"another verb":         {"POST", "/metrics", "Bearer good", http.StatusForbidden},
		"another path":         {"GET", "/debug", "Bearer good", http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			p := (&reviewer{}).protection(testclock.NewFakeClock(time.Now()))
			for range 2 { // asked, and remembered
				if got := ask(t, p, test.method, test.path, test.authorization); got != test.want {
					t.Errorf("got %d, want %d", got, test.want)
				}
			}
		})
	}
}

func TestAnswersAreRememberedForAWhile(t *testing.T) {
	clock := testclock.NewFakeClock(time.Now())
	server := &reviewer{}
	p := server.protection(clock)
	for _, step := range []struct {
		token            string
		after            time.Duration
		tokens, accesses int
	}{
		{"good", 0, 1, 1},
		{"good", allowedFor - time.Second, 1, 1},
		{"good", 2 * time.Second, 2, 2},
		{"bad", 0, 3, 2},
		{"bad", deniedFor - time.Second, 3, 2},
		{"bad", 2 * time.Second, 4, 2},
	} {
		clock.Step(step.after)
		ask(t, p, "GET", "/metrics", "Bearer "+step.token)
		if server.tokens != step.tokens || server.accesses != step.accesses {
			t.Errorf("%+v: the server was asked %d and %d times", step, server.tokens, server.accesses)
		}
	}
}

func TestAServerThatCannotBeAskedAllowsNothing(t *testing.T) {
	server := &reviewer{broken: errors.New("down")}
	p := server.protection(testclock.NewFakeClock(time.Now()))
	if got := ask(t, p, "GET", "/metrics", "Bearer good"); got != http.StatusInternalServerError {
		t.Errorf("got %d", got)
	}
	server.broken = nil
	if got := ask(t, p, "GET", "/metrics", "Bearer good"); got != http.StatusOK {
		t.Errorf("the failure was remembered: %d", got)
	}
}
