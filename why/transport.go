// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Transport records writes of reconcilers through clients that cannot be wrapped, such as client-go's
// clientsets. Use it with the Wrap method of a rest.Config. It ignores writes that a client from
// Recorder.Client records.
func (r *Recorder) Transport(inner http.RoundTripper) http.RoundTripper {
	if r == nil {
		return inner
	}
	r.hasTransport.Store(true)
	return &transport{inner: inner, recorder: r}
}

type transport struct {
	inner    http.RoundTripper
	recorder *Recorder
}

// WrappedRoundTripper returns the inner transport for client-go.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.inner }

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	p := t.recorder.passOf(ctx)
	if p == nil || ctx.Value(countedKey{}) != nil {
		return t.inner.RoundTrip(request)
	}
	written, ok := writeOf(request)
	if !ok || written.isDryRun(request) {
		return t.inner.RoundTrip(request)
	}
	w := &sentWrite{Write: written}
	w.At = t.recorder.options.Clock.Now()
	response, err := t.inner.RoundTrip(request)
	refused := err
	switch {
	case err != nil:
	case response.StatusCode >= http.StatusBadRequest:
		refused = errors.New(response.Status)
	case w.Verb != verbDeleteCollection:
		w.ended = readAnswer(response, &w.Write)
	}
	p.sent(w, refused)
	return response, err
}

// isConversation reports whether a subresource is a way to talk to what runs, rather than a part of an object.
func isConversation(subresource string) bool {
	switch subresource {
	case "proxy", "exec", "attach", "portforward":
		return true
	}
	return false
}

// writeOf returns the write that a request makes, as far as its URL shows.
func writeOf(request *http.Request) (w Write, ok bool) {
	query := request.URL.Query()
	if len(query["dryRun"]) > 0 {
		return w, false
	}
	w.Manager = cmp.Or(query.Get("fieldManager"), managerOfAgent(request.Header.Get("User-Agent")))
	switch request.Method {
	case http.MethodPost:
		w.Verb = verbCreate
	case http.MethodPut:
		w.Verb = verbUpdate
	case http.MethodDelete:
		w.Verb = verbDelete
	case http.MethodPatch:
		w.Verb = verbPatch
		if strings.HasPrefix(request.Header.Get("Content-Type"), "application/apply-patch") {
			w.Verb = verbApply
		}
	default:
		return w, false
	}
	// api/VERSION or apis/GROUP/VERSION, after the prefix that the server may have.
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	for len(parts) > 0 && parts[0] != "api" && parts[0] != "apis" {
		parts = parts[1:]
	}
	if len(parts) > 0 && parts[0] == "apis" {
		w.Object.Group = partAt(parts, 1)
		parts = parts[1:]
	}
	w.Object.Version = partAt(parts, 1)
	parts = parts[min(2, len(parts)):]
	if len(parts) > 2 && parts[0] == "namespaces" && (len(parts) > 3 || parts[2] != "finalize" && parts[2] != "status") {
		w.Object.Namespace = parts[1]
		parts = parts[2:]
	}
	if len(parts) == 0 || isReview(w.Object.Group) {
		return w, false
	}
	// The response has the kind; until then it is the resource.
	w.Object.Kind, w.Object.Name, w.Subresource = parts[0], partAt(parts, 1), partAt(parts, 2)
	if w.isDeletion() && w.Verb == verbCreate {
		w.Object.Kind = "Pod" // only pods are evicted, and the response does not contain the pod
	}
	if w.Verb == verbDelete {
		w.Manager = ""
		if w.Object.Name == "" {
			w.Verb = verbDeleteCollection
		}
	}
	return w, !isConversation(w.Subresource)
}

// isDryRun reports whether the body of a deletion or an eviction requests a dry run. Other writes do that in the URL.
func (w *Write) isDryRun(request *http.Request) bool {
	if request.GetBody == nil || !w.isDeletion() && w.Verb != verbDeleteCollection {
		return false
	}
	body, err := request.GetBody()
	if err != nil {
		return false
	}
	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, maxAnswer))
	if err != nil {
		return false
	}
	var options metav1.DeleteOptions
	var eviction policyv1.Eviction
	if message, ok := bytes.CutPrefix(data, protobufMark); ok {
		var envelope runtime.Unknown
		switch {
		case envelope.Unmarshal(message) != nil:
			return false
		case w.Verb == verbCreate:
			err = eviction.Unmarshal(envelope.Raw)
		default:
			err = options.Unmarshal(envelope.Raw)
		}
	} else if w.Verb == verbCreate {
		err = json.Unmarshal(data, &eviction)
	} else {
		err = json.Unmarshal(data, &options)
	}
	if eviction.DeleteOptions != nil {
		options = *eviction.DeleteOptions
	}
	return err == nil && len(options.DryRun) > 0
}

func partAt(parts []string, index int) string {
	if index >= len(parts) {
		return ""
	}
	return parts[index]
}

// maxAnswer is more than an object can take that the server stores.
const maxAnswer = 8 << 20

// readAnswer adds the content of the response to the write, and keeps the response readable. It returns
// whether the write removed the object.
func readAnswer(response *http.Response, w *Write) (ended bool) {
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if kind != runtime.ContentTypeJSON && kind != runtime.ContentTypeProtobuf {
		return false
	}
	body := response.Body
	data, err := io.ReadAll(io.LimitReader(body, maxAnswer))
	rest := io.Reader(body)
	if err != nil {
		rest = failing{err}
	}
	response.Body = &readAgain{Reader: io.MultiReader(bytes.NewReader(data), rest), Closer: body}
	if err != nil || len(data) == maxAnswer {
		return false
	}
	answer, status, ok := decodeAnswer(data, kind)
	if ok && status.Details != nil && w.isDeletion() {
		// Nothing is left but which object it was.
		w.Object.UID = string(status.Details.UID)
	}
	if !ok || answer.Kind == "" || answer.Name == "" || answer.Kind == "Status" {
		return false
	}
	group := schema.FromAPIVersionAndKind(answer.APIVersion, answer.Kind)
	w.Object = Object{
		Kind: group.Kind, Group: group.Group, Version: group.Version,
		Namespace: answer.Namespace, Name: answer.Name, UID: string(answer.UID),
	}
	if w.Verb == verbDelete {
		return false
	}
	w.ResourceVersion = answer.ResourceVersion
	return w.Verb != verbCreate && hasEnded(&answer) && !isHeld(&w.Object, decodeNamespace(data, kind, &answer))
}

// decodeNamespace reads an answer once more if it is a namespace; otherwise, it returns the metadata.
func decodeNamespace(data []byte, contentType string, metadata *metav1.PartialObjectMetadata) client.Object {
	if metadata.Kind != "Namespace" {
		return metadata
	}
	var namespace corev1.Namespace
	if contentType == runtime.ContentTypeJSON {
		if json.Unmarshal(data, &namespace) != nil {
			return metadata
		}
		return &namespace
	}
	var envelope runtime.Unknown
	if envelope.Unmarshal(bytes.TrimPrefix(data, protobufMark)) != nil || namespace.Unmarshal(envelope.Raw) != nil {
		return metadata
	}
	return &namespace
}

// protobufMark begins each object that is encoded in protobuf.
var protobufMark = []byte("k8s\x00")

// decodeAnswer reads an object's metadata, or the Status that is the answer to a deletion.
func decodeAnswer(data []byte, contentType string) (object metav1.PartialObjectMetadata, status metav1.Status, ok bool) {
	if contentType == runtime.ContentTypeJSON {
		if json.Unmarshal(data, &object) != nil {
			return object, status, false
		}
		return object, status, object.Kind != "Status" || json.Unmarshal(data, &status) == nil
	}
	var envelope runtime.Unknown
	body, ok := bytes.CutPrefix(data, protobufMark)
	if !ok || envelope.Unmarshal(body) != nil {
		return object, status, false
	}
	object.TypeMeta = metav1.TypeMeta{Kind: envelope.Kind, APIVersion: envelope.APIVersion}
	if object.Kind == "Status" {
		return object, status, status.Unmarshal(envelope.Raw) == nil
	}
	// In all kinds, metadata is the first field, so this reads it and skips the rest.
	return object, status, object.Unmarshal(envelope.Raw) == nil
}

// readAgain is a body that returns a part that was read before.
type readAgain struct {
	io.Reader
	io.Closer
}

// failing is what remains of a body that broke off.
type failing struct{ err error }

// Read implements io.Reader.
func (f failing) Read([]byte) (int, error) {
	return 0, f.err
}
