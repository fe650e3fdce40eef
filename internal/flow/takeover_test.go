// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

func setOf(fields string) *fieldpath.Set {
	return fieldsOf(&metav1.ManagedFieldsEntry{FieldsV1: metav1.NewFieldsV1(fields)})
}

func TestTakenOver(t *testing.T) {
	entry := func(manager string, operation metav1.ManagedFieldsOperationType, subresource, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, Subresource: subresource, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	entries := []metav1.ManagedFieldsEntry{
		entry("us", "Update", "", `{"f:spec":{"f:a":{}}}`),
		entry("us", "Apply", "", `{"f:metadata":{"f:annotations":{"f:opdock.dev/applied":{}}},"f:spec":{"f:b":{}}}`),
		entry("us", "Update", "status", `{"f:status":{"f:a":{}}}`),
		entry("intruder", "Update", "", `{"f:metadata":{"f:labels":{"f:x":{}}},"f:spec":{"f:c":{}}}`),
		entry("intruder", "Apply", "", `{"f:spec":{"f:d":{}}}`),
		entry("intruder", "Update", "scale", `{"f:spec":{"f:c":{}}}`),
		entry("bystander", "Update", "", `{"f:spec":{"f:c":{}}}`),
	}
	added := []manager{
		{"intruder", "", setOf(`{"f:spec":{"f:c":{}}}`)},
		{"intruder", "", setOf(`{"f:spec":{"f:d":{}}}`)},
	}
	result, err := takenOver(entries, "us", "v1", drift{added: added, injected: setOf(`{"f:spec":{"k:{\"name\":\"x\"}":{}}}`)})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range result {
		got[e.Manager+" "+string(e.Operation)+" "+e.Subresource] = e.FieldsV1.GetRawString()
	}
	want := map[string]string{
		"us Apply ":             `{"f:spec":{"f:a":{},"f:b":{},"f:c":{},"f:d":{},"k:{\"name\":\"x\"}":{}}}`,
		"us Update status":      `{"f:status":{"f:a":{}}}`,
		"intruder Update ":      `{"f:metadata":{"f:labels":{"f:x":{}}}}`,
		"intruder Update scale": `{"f:spec":{"f:c":{}}}`,
		"bystander Update ":     `{"f:spec":{"f:c":{}}}`,
	}
	if difference := cmp.Diff(want, got); difference != "" {
		t.Error(difference)
	}
}
