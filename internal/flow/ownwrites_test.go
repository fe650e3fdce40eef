// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func version(v string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a", UID: "u", ResourceVersion: v}}
}

func TestOwnWritesAreNoNews(t *testing.T) {
	key := client.ObjectKeyFromObject(version(""))
	for name, test := range map[string]struct {
		answer client.Object
		want   []string // the versions that are news after all
	}{
		"the answer":  {version("12"), []string{"11", "13"}},
		"a refusal":   {nil, []string{"11", "12", "13"}},
		"another one": {version("14"), []string{"11", "12", "13"}},
	} {
		var own ownWrites
		var news []string
		done := own.begin(&corev1.ConfigMap{}, key)
		for _, v := range []string{"11", "12", "13"} {
			if !own.postpone(version(v), func() { news = append(news, v) }) {
				t.Errorf("%s: version %s is news while the write is under way", name, v)
			}
		}
		if len(news) > 0 {
			t.Errorf("%s: %v are news before the answer", name, news)
		}
		done(test.answer)
		if !slices.Equal(news, test.want) {
			t.Errorf("%s: %v are news, want %v", name, news, test.want)
		}
		if own.postpone(version("15"), func() {}) {
			t.Errorf("%s: events wait after the answer", name)
		}
	}
}

func TestEventsOfOtherObjectsDoNotWait(t *testing.T) {
	var own ownWrites
	defer own.begin(&corev1.ConfigMap{}, client.ObjectKeyFromObject(version("")))(nil)
	other := version("1")
	other.Name = "b"
	for _, object := range []client.Object{other, &corev1.Secret{ObjectMeta: version("1").ObjectMeta}} {
		if own.postpone(object, func() {}) {
			t.Errorf("%T %s waits for the write of another object", object, object.GetName())
		}
	}
}

func TestAllWritesOfAPassAreOwn(t *testing.T) {
	var own ownWrites
	for _, v := range []string{"1", "2", "3", "4"} {
		own.add(version(v))
	}
	for v, want := range map[string]bool{"1": false, "2": true, "3": true, "4": true, "5": false} {
		if own.has(version(v)) != want {
			t.Errorf("version %s counts as our own: %v", v, !want)
		}
	}
	if !own.supersedes(version("3")) || own.supersedes(version("4")) {
		t.Error("the last one does not count")
	}
	own.forget("u")
	if own.has(version("4")) || own.supersedes(version("1")) {
		t.Error("what is forgotten counts")
	}
}
