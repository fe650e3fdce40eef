// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// protection lets requests through whose bearer token the API server accepts, and whose owner may do what is asked for at that
// path. controller-runtime has the same, by way of the API server's own library, which evaluates CEL and brings templates
// with it; without those, the manager is a third smaller in memory.
type protection struct {
	tokens  authenticationclient.TokenReviewInterface
	access  authorizationclient.SubjectAccessReviewInterface
	answers *cache.LRUExpireCache // decisions by question
}

const (
	// reviewTimeout bounds how long a request waits for the API server.
	reviewTimeout = 10 * time.Second
	// allowedFor is for how long a token that was revoked may go on working.
	allowedFor = time.Minute
	// deniedFor is how long a refused token is cached.
	deniedFor = 10 * time.Second
	// maxAnswers bounds the memory that strangers can make us use.
	maxAnswers = 256
)

// question is the key of a review. The token itself is not kept.
type question struct {
	token      [sha256.Size]byte
	verb, path string
}

// decision is an HTTP status, and what is said with it if it is not StatusOK.
type decision struct {
	status  int
	message string
}

// protect is a metricsserver.Options.FilterProvider.
func protect(config *rest.Config, client *http.Client) (metricsserver.Filter, error) {
	tokens, err := authenticationclient.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("creating a client for token reviews: %w", err)
	}
	access, err := authorizationclient.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("creating a client for access reviews: %w", err)
	}
	return newProtection(tokens.TokenReviews(), access.SubjectAccessReviews()).filter, nil
}

func newProtection(tokens authenticationclient.TokenReviewInterface, access authorizationclient.SubjectAccessReviewInterface) *protection {
	return &protection{tokens: tokens, access: access, answers: cache.NewLRUExpireCache(maxAnswers)}
}

func (p *protection) filter(log logr.Logger, next http.Handler) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		ctx, cancel := context.WithTimeout(request.Context(), reviewTimeout)
		defer cancel()
		answer, err := p.decide(ctx, request)
		switch {
		case err != nil:
			log.Error(err, "Cannot authorize a request", "path", request.URL.Path)
			http.Error(w, "the API server could not be reached to authorize this request", http.StatusInternalServerError)
		case answer.status != http.StatusOK:
			http.Error(w, answer.message, answer.status)
		default:
			next.ServeHTTP(w, request)
		}
	}), nil
}

func (p *protection) decide(ctx context.Context, request *http.Request) (decision, error) {
	scheme, token, _ := strings.Cut(request.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return decision{http.StatusUnauthorized, "a bearer token is required"}, nil
	}
	asked := question{sha256.Sum256([]byte(token)), strings.ToLower(request.Method), request.URL.Path}
	if known, ok := p.answers.Get(asked); ok {
		return known.(decision), nil
	}
	answer, err := p.ask(ctx, token, asked)
	if err != nil {
		return decision{}, err
	}
	lasts := deniedFor
	if answer.status == http.StatusOK {
		lasts = allowedFor
	}
	p.answers.Add(asked, answer, lasts)
	return answer, nil
}

func (p *protection) ask(ctx context.Context, token string, asked question) (decision, error) {
	review, err := p.tokens.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return decision{}, fmt.Errorf("reviewing a token: %w", err)
	}
	if !review.Status.Authenticated {
		return decision{http.StatusUnauthorized, "the API server does not accept this token"}, nil
	}
	user := review.Status.User
	extra := map[string]authorizationv1.ExtraValue{}
	for name, values := range user.Extra {
		extra[name] = authorizationv1.ExtraValue(values)
	}
	access, err := p.access.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: asked.path, Verb: asked.verb},
	}}, metav1.CreateOptions{})
	if err != nil {
		return decision{}, fmt.Errorf("reviewing the access of %s: %w", user.Username, err)
	}
	if !access.Status.Allowed || access.Status.Denied {
		return decision{http.StatusForbidden, fmt.Sprintf("%s is not allowed to %s %s", user.Username, asked.verb, asked.path)}, nil
	}
	return decision{status: http.StatusOK}, nil
}
