// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package whycmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/controller"
	"github.com/opdock/opdock/internal/crdspec"
	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/page"
	"github.com/opdock/opdock/internal/projectfile"
	"github.com/opdock/opdock/why"
)

// whyEndpoint is where records are served.
type whyEndpoint struct {
	address string
	// others are tried if there is no response.
	others []string
	// absent is the error if no endpoint responds.
	absent error
}

// open sends a request to the endpoint. The caller closes the body.
func (e *whyEndpoint) open(ctx context.Context, what string, values url.Values) (io.ReadCloser, error) {
	address := e.address + "/why/" + what
	if len(values) > 0 {
		address += "?" + values.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, &cmdutil.UsageError{Message: fmt.Sprintf("%q is not a URL", e.address)}
	}
	// Loopback needs no proxy, and must not get one.
	client := &http.Client{Transport: &http.Transport{Proxy: nil, ResponseHeaderTimeout: 10 * time.Second}}
	response, err := client.Do(request)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case len(e.others) > 0:
		e.address, e.others = e.others[0], e.others[1:]
		return e.open(ctx, what, values)
	default:
		return nil, e.absent
	}
	kind := response.Header.Get("Content-Type")
	if response.StatusCode == http.StatusOK && (strings.HasPrefix(kind, "application/json") || strings.HasPrefix(kind, "text/event-stream")) {
		return response.Body, nil
	}
	defer response.Body.Close()
	var refused struct{ Error string }
	if json.NewDecoder(io.LimitReader(response.Body, 1<<16)).Decode(&refused) == nil && refused.Error != "" && response.StatusCode != http.StatusNotFound {
		return nil, fmt.Errorf("the endpoint returned an error: %s", refused.Error)
	}
	return nil, e.tooOld(response.Status)
}

func (e *whyEndpoint) tooOld(details string) error {
	return hint.With(fmt.Errorf("%s does not serve reconcile records (%s)", e.address, details),
		"it may be an older version of opdock: restart it with this version")
}

func (e *whyEndpoint) ask(ctx context.Context, what string, values url.Values, into any) error {
	body, err := e.open(ctx, what, values)
	if err != nil {
		return err
	}
	defer body.Close()
	if err := json.NewDecoder(body).Decode(into); err != nil {
		return fmt.Errorf("decoding the response of the endpoint: %w", err)
	}
	return nil
}

func (e *whyEndpoint) summary(ctx context.Context) (s why.Summary, err error) {
	if err := e.ask(ctx, "summary", nil, &s); err != nil {
		return s, err
	}
	if s.Version < 1 {
		return s, e.tooOld("the response has no version")
	}
	return s, nil
}

func (e *whyEndpoint) records(ctx context.Context, q why.Query) (answer why.Answer, err error) {
	return answer, e.ask(ctx, "records", whyValues(q), &answer)
}

func whyValues(q why.Query) url.Values {
	values := url.Values{}
	for name, value := range map[string]string{"kind": q.Kind, "namespace": q.Namespace, "name": q.Name} {
		if value != "" {
			values.Set(name, value)
		}
	}
	if q.After > 0 {
		values.Set("after", strconv.FormatUint(q.After, 10))
	}
	if q.Limit > 0 {
		values.Set("limit", strconv.Itoa(q.Limit))
	}
	return values
}

// follow shows each new record, or how many were lost, until the context ends.
func (e *whyEndpoint) follow(ctx context.Context, q why.Query, see func(record *why.Record, lost uint64) error) error {
	q.Limit = 0
	body, err := e.open(ctx, "stream", whyValues(q))
	if err != nil {
		return err
	}
	defer body.Close()
	err = page.ReadRecords(body, see)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return errors.New("the controllers have stopped")
	}
	return err
}

// whichObject reads KIND or KIND/NAME. Kinds are called as with kubectl: in any case, in the plural, or short.
func whichObject(what string, summary why.Summary) (kind, name string, err error) {
	given, name, named := strings.Cut(what, "/")
	if given == "" || named && (name == "" || strings.Contains(name, "/")) {
		return "", "", &cmdutil.UsageError{Message: fmt.Sprintf("%q does not name an object: use KIND or KIND/NAME, such as appservice/web", what)}
	}
	kinds := map[string][]string{}
	for _, c := range summary.Controllers {
		if c.Kind != "" {
			kinds[c.Kind] = []string{c.Kind, projectfile.RegularPlural(c.Kind)}
		}
	}
	crds, err := controller.CRDs(controller.Kinds)
	if err != nil {
		return "", "", err
	}
	for _, crd := range crds {
		spec := crdspec.Of(crd)
		if _, runs := kinds[spec.Kind]; runs {
			kinds[spec.Kind] = append(append(kinds[spec.Kind], spec.Plural), spec.ShortNames...)
		}
	}
	var all []string
	for kind, names := range kinds {
		if slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, given) }) {
			return kind, name, nil
		}
		all = append(all, strings.ToLower(kind))
	}
	slices.Sort(all)
	return "", "", &cmdutil.UsageError{Message: fmt.Sprintf("no controller reconciles kind %q", given), Hints: []string{"kinds: " + strings.Join(all, ", ")}}
}
