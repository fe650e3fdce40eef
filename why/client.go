// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Verbs of writes.
const (
	verbCreate           = "create"
	verbUpdate           = "update"
	verbPatch            = "patch"
	verbApply            = "apply"
	verbDelete           = "delete"
	verbDeleteCollection = "deletecollection"
)

// NewClient creates a client whose writes are recorded. Use it as NewClient in the options of a manager.
func (r *Recorder) NewClient(config *rest.Config, options client.Options) (client.Client, error) {
	c, err := client.New(config, options)
	if err != nil || r == nil {
		return c, err
	}
	agent := config.UserAgent
	if agent == "" {
		agent = rest.DefaultKubernetesUserAgent()
	}
	return r.client(c, cmp.Or(options.FieldOwner, managerOfAgent(agent))), nil
}

// managerOfAgent is the field manager that the server uses for requests without one.
func managerOfAgent(agent string) string {
	name, _, _ := strings.Cut(agent, "/")
	return name
}

// Client wraps a client and records the writes that a reconciler sends through it with its own context.
func (r *Recorder) Client(c client.Client) client.Client {
	if r == nil {
		return c
	}
	return r.client(c, "")
}

func (r *Recorder) client(c client.Client, manager string) client.Client {
	wrapped := &recordingClient{Client: c, recorder: r, manager: manager}
	if watching, ok := c.(client.WithWatch); ok {
		return &watchingClient{recordingClient: wrapped, watching: watching}
	}
	return wrapped
}

type recordingClient struct {
	client.Client
	recorder *Recorder
	// manager is the field manager of requests that do not name one; it may be unknown.
	manager string
}

// watchingClient is a client that can watch, too.
type watchingClient struct {
	*recordingClient
	watching client.WithWatch
}

// Watch implements client.WithWatch.
func (c *watchingClient) Watch(ctx context.Context, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
	return c.watching.Watch(ctx, list, opts...)
}

// countedKey marks the context of requests that a client has recorded, so a transport does not record them again.
type countedKey struct{}

// asking is a request that is to be noted, if it belongs to a reconcile.
type asking struct {
	pass *pass // nil if it is not to be noted
	w    *sentWrite
	// body is the object that was sent and receives the response, if it is not the object itself, such as a Scale.
	body client.Object
}

// ask begins a request. Send the request with the returned context.
func (r *Recorder) ask(ctx context.Context, object client.Object, verb, subresource, manager string, dryRun []string, body client.Object) (context.Context, asking) {
	p := r.passOf(ctx)
	if p == nil || len(dryRun) > 0 {
		return ctx, asking{}
	}
	w := &sentWrite{before: object.GetResourceVersion()}
	w.Verb, w.Subresource, w.Manager, w.At = verb, subresource, manager, r.options.Clock.Now()
	if r.hasTransport.Load() {
		ctx = context.WithValue(ctx, countedKey{}, true)
	}
	return ctx, asking{p, w, body}
}

// answered records the response to a request, and returns its error.
func (a *asking) answered(object client.Object, err error) error {
	if a.pass == nil {
		return err
	}
	w := a.w
	w.Object = a.pass.controller.recorder.name(object)
	switch {
	case isReview(w.Object.Group):
		return err
	case w.Verb == verbDelete || w.Verb == verbDeleteCollection || err != nil:
	case a.body != nil:
		// It has the version of the object that it is a part of, if the server stores it.
		w.ResourceVersion = a.body.GetResourceVersion()
		w.Object.UID = cmp.Or(w.Object.UID, string(a.body.GetUID()))
	default:
		w.ResourceVersion = object.GetResourceVersion()
		w.ended = w.Verb != verbCreate && !object.GetDeletionTimestamp().IsZero() && hasEnded(object) && !isHeld(&w.Object, object)
	}
	a.pass.sent(w, err)
	return err
}

// isReview reports whether objects of a group are questions, which are created but change nothing.
func isReview(group string) bool {
	return group == "authorization.k8s.io" || group == "authentication.k8s.io"
}

// Create implements client.Writer.
func (c *recordingClient) Create(ctx context.Context, object client.Object, opts ...client.CreateOption) error {
	o := (&client.CreateOptions{}).ApplyOptions(opts)
	ctx, asked := c.recorder.ask(ctx, object, verbCreate, "", cmp.Or(o.FieldManager, c.manager), o.DryRun, nil)
	return asked.answered(object, c.Client.Create(ctx, object, opts...))
}

// Update implements client.Writer.
func (c *recordingClient) Update(ctx context.Context, object client.Object, opts ...client.UpdateOption) error {
	o := (&client.UpdateOptions{}).ApplyOptions(opts)
	ctx, asked := c.recorder.ask(ctx, object, verbUpdate, "", cmp.Or(o.FieldManager, c.manager), o.DryRun, nil)
	return asked.answered(object, c.Client.Update(ctx, object, opts...))
}

// Patch implements client.Writer.
func (c *recordingClient) Patch(ctx context.Context, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
	o := (&client.PatchOptions{}).ApplyOptions(opts)
	ctx, asked := c.recorder.ask(ctx, object, patchVerb(patch), "", cmp.Or(o.FieldManager, c.manager), o.DryRun, nil)
	return asked.answered(object, c.Client.Patch(ctx, object, patch, opts...))
}

// Apply implements client.Writer.
func (c *recordingClient) Apply(ctx context.Context, configuration runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	o := (&client.ApplyOptions{}).ApplyOptions(opts)
	ctx, asked := c.recorder.ask(ctx, nothingYet, verbApply, "", cmp.Or(o.FieldManager, c.manager), o.DryRun, nil)
	return asked.applied(configuration, c.Client.Apply(ctx, configuration, opts...))
}

// Delete implements client.Writer.
func (c *recordingClient) Delete(ctx context.Context, object client.Object, opts ...client.DeleteOption) error {
	o := (&client.DeleteOptions{}).ApplyOptions(opts)
	ctx, asked := c.recorder.ask(ctx, object, verbDelete, "", "", o.DryRun, nil)
	return asked.answered(object, c.Client.Delete(ctx, object, opts...))
}

// DeleteAllOf implements client.Writer.
func (c *recordingClient) DeleteAllOf(ctx context.Context, object client.Object, opts ...client.DeleteAllOfOption) error {
	o := (&client.DeleteAllOfOptions{}).ApplyOptions(opts)
	ctx, asked := c.recorder.ask(ctx, object, verbDeleteCollection, "", "", o.DryRun, nil)
	return asked.answered(object, c.Client.DeleteAllOf(ctx, object, opts...))
}

func patchVerb(patch client.Patch) string {
	if patch.Type() == types.ApplyPatchType || patch.Type() == types.ApplyCBORPatchType {
		return verbApply
	}
	return verbPatch
}

// nothingYet is the object of a configuration before there is an answer.
var nothingYet = &metav1.PartialObjectMetadata{}

// applied is answered for apply configurations, which hold the server's response but expose it only as JSON.
func (a *asking) applied(configuration runtime.ApplyConfiguration, err error) error {
	if a.pass == nil {
		return err
	}
	answer := &metav1.PartialObjectMetadata{}
	if data, marshalErr := json.Marshal(configuration); marshalErr == nil {
		// An unreadable response is not an error; its fields are unknown.
		_ = json.Unmarshal(data, answer)
	}
	return a.answered(answer, err)
}

// Status implements client.StatusClient.
func (c *recordingClient) Status() client.SubResourceWriter { return c.SubResource("status") }

// SubResource implements client.SubResourceClientConstructor.
func (c *recordingClient) SubResource(name string) client.SubResourceClient {
	return &subresourceClient{SubResourceClient: c.Client.SubResource(name), recorder: c.recorder, name: name, manager: c.manager}
}

type subresourceClient struct {
	client.SubResourceClient
	recorder *Recorder
	name     string
	manager  string
}

// Create implements client.SubResourceWriter.
func (c *subresourceClient) Create(ctx context.Context, object, subresource client.Object, opts ...client.SubResourceCreateOption) error {
	o := (&client.SubResourceCreateOptions{}).ApplyOptions(opts)
	ctx, asked := c.recorder.ask(ctx, object, verbCreate, c.name, cmp.Or(o.FieldManager, c.manager), o.DryRun, subresource)
	return asked.answered(object, c.SubResourceClient.Create(ctx, object, subresource, opts...))
}

// Update implements client.SubResourceWriter.
func (c *subresourceClient) Update(ctx context.Context, object client.Object, opts ...client.SubResourceUpdateOption) error {
	o := (&client.SubResourceUpdateOptions{}).ApplyOptions(opts)
	ctx, asked := c.recorder.ask(ctx, object, verbUpdate, c.name, cmp.Or(o.FieldManager, c.manager), o.DryRun, o.SubResourceBody)
	return asked.answered(object, c.SubResourceClient.Update(ctx, object, opts...))
}

// Patch implements client.SubResourceWriter.
func (c *subresourceClient) Patch(ctx context.Context, object client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	o := (&client.SubResourcePatchOptions{}).ApplyOptions(opts)
	ctx, asked := c.recorder.ask(ctx, object, patchVerb(patch), c.name, cmp.Or(o.FieldManager, c.manager), o.DryRun, o.SubResourceBody)
	return asked.answered(object, c.SubResourceClient.Patch(ctx, object, patch, opts...))
}

// Apply implements client.SubResourceWriter.
func (c *subresourceClient) Apply(ctx context.Context, configuration runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	o := (&client.SubResourceApplyOptions{}).ApplyOpts(opts)
	ctx, asked := c.recorder.ask(ctx, nothingYet, verbApply, c.name, cmp.Or(o.FieldManager, c.manager), o.DryRun, nil)
	return asked.applied(configuration, c.SubResourceClient.Apply(ctx, configuration, opts...))
}

var (
	_ client.WithWatch         = &watchingClient{}
	_ client.SubResourceClient = &subresourceClient{}
)
