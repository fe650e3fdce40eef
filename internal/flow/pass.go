// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"fmt"
	"reflect"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Pass is one reconcile of one object. All changes for that object are made through it.
type Pass struct {
	owner      client.Object
	fieldOwner string
	labelKind  string
	client     client.Client
	reader     client.Reader
	bystanders *bystanders
	own        *ownWrites
	shapes     *shapes
	contests   *contests
	now        time.Time
	// cachesAll is Kind.CachesAll.
	cachesAll bool
	// asksServer is whether there may be obsolete children that the caches do not hold: the spec has changed since the last pass,
	// or that pass has left some.
	asksServer bool
	// hasObsolete is whether an obsolete child is still there.
	hasObsolete bool
	// changes holds the changes of this pass, and repairs the corrected drift.
	changes, repairs []string
	// remark is for the message of Ready.
	remark string
}

// Changed records a change for the event of this pass.
func (p *Pass) Changed(format string, args ...any) {
	p.changes = append(p.changes, fmt.Sprintf(format, args...))
}

// Restored records corrected drift, for a separate event.
func (p *Pass) Restored(format string, args ...any) {
	p.repairs = append(p.repairs, fmt.Sprintf(format, args...))
}

// describe names an object as people do: its kind and name.
func describe(object client.Object, name string) string {
	return reflect.TypeOf(object).Elem().Name() + " " + name
}

// clearObject makes an object empty.
func clearObject(object client.Object) {
	value := reflect.ValueOf(object).Elem()
	value.Set(reflect.Zero(value.Type()))
}

// setObject makes an object a shallow copy of another one of its type.
func setObject(object, to client.Object) {
	reflect.ValueOf(object).Elem().Set(reflect.ValueOf(to).Elem())
}

// newLike returns an empty object of the same type.
func newLike(object client.Object) client.Object {
	return reflect.New(reflect.TypeOf(object).Elem()).Interface().(client.Object)
}
