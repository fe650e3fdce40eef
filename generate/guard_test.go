// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/klog/v2"
)

func TestGuardedTurnsEndsIntoErrors(t *testing.T) {
	cause := errors.New("a cause")
	for name, test := range map[string]struct {
		run  func() error
		want string
	}{
		"nothing":      {func() error { return nil }, ""},
		"error":        {func() error { return cause }, "a cause"},
		"klog.Fatalf":  {func() error { klog.Fatalf("type %s is wrong", "T"); return nil }, "type T is wrong"},
		"klog.Fatal":   {func() error { klog.Fatal(cause); return nil }, "a cause"},
		"panic text":   {func() error { panic("wrong") }, "wrong"},
		"panic error":  {func() error { panic(cause) }, "a cause"},
		"panic number": {func() error { panic(3) }, "the generator crashed: 3"},
		"index":        {func() error { return third(nil) }, "the generator crashed: runtime error"},
		"other levels": {func() error { klog.Error("Fatal"); klog.Warning("F"); klog.Info("F"); return nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := quietly(func() error { return guarded(test.run) })
			switch {
			case test.want == "" && err != nil:
				t.Errorf("got %v", err)
			case test.want != "" && (err == nil || !strings.HasPrefix(err.Error(), test.want)):
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestGuardedWorksInManyGoroutines(t *testing.T) {
	const many = 50
	errs := make(chan error, many)
	err := quietly(func() error {
		for range many {
			go func() { errs <- guarded(func() error { klog.Fatal("the end"); return nil }) }()
		}
		for range many {
			if err := <-errs; err == nil || err.Error() != "the end" {
				t.Errorf("got %v", err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func third(list []error) error { return list[2] }
