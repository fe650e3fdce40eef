// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// protobufMark begins each object that is encoded in protobuf.
var protobufMark = []byte("k8s\x00")

// known has the kinds that may be encoded as protobuf. Custom resources never are.
var known = newScheme()

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(apiextensionsv1.AddToScheme(s))
	utilruntime.Must(metav1.AddMetaToScheme(s))
	return s
}

var protobufDecoder = protobuf.NewSerializer(known, known)

// decode reads an object of any kind. What came as protobuf is typed: it takes less time and room than unstructured.
func decode(data []byte, as encoding) (runtime.Object, error) {
	switch as {
	case encodedJSON:
		object := &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(data, &object.Object); err != nil {
			return nil, err
		}
		if object.Object == nil {
			return nil, errors.New("it is not an object")
		}
		return object, nil
	case encodedProtobuf:
		typed, kind, err := protobufDecoder.Decode(data, nil, nil)
		if err != nil {
			return nil, err
		}
		typed.GetObjectKind().SetGroupVersionKind(*kind)
		return typed, nil
	}
	return nil, errors.New(unknownEncoding)
}

// asUnstructured returns an object, list or status in its generic form. It is empty if the object cannot be converted.
func asUnstructured(object runtime.Object) *unstructured.Unstructured {
	if object, ok := object.(*unstructured.Unstructured); ok {
		return object
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return &unstructured.Unstructured{Object: map[string]any{}}
	}
	return &unstructured.Unstructured{Object: content}
}

// kindOf returns the kind of an object.
func kindOf(object runtime.Object) string { return object.GetObjectKind().GroupVersionKind().Kind }

// watchEvent is an event of a watch.
type watchEvent struct {
	Type   string
	Object runtime.Object
}

func decodeEvent(data []byte, as encoding) (e watchEvent, err error) {
	switch as {
	case encodedJSON:
		var raw struct {
			Type   string         `json:"type"`
			Object map[string]any `json:"object"`
		}
		if err := utiljson.Unmarshal(data, &raw); err != nil {
			return e, err
		}
		if raw.Type == "" || raw.Object == nil {
			return e, errors.New("it is not an event")
		}
		return watchEvent{raw.Type, &unstructured.Unstructured{Object: raw.Object}}, nil
	case encodedProtobuf:
		var raw metav1.WatchEvent
		if rest, enveloped := bytes.CutPrefix(data, protobufMark); enveloped {
			var envelope runtime.Unknown
			if err := envelope.Unmarshal(rest); err != nil {
				return e, err
			}
			data = envelope.Raw
		}
		if err := raw.Unmarshal(data); err != nil {
			return e, err
		}
		inner := encodedJSON
		if bytes.HasPrefix(raw.Object.Raw, protobufMark) {
			inner = encodedProtobuf
		}
		object, err := decode(raw.Object.Raw, inner)
		return watchEvent{raw.Type, object}, err
	}
	return e, errors.New(unknownEncoding)
}

// inflate undoes the compression of an answer. Decoded, an object takes several times the room of its text, so the text
// has the same bound with and without compression.
func inflate(data []byte, compression string) ([]byte, error) {
	switch compression {
	case "", "identity":
		return data, nil
	case "gzip":
		reader, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return nil, err
		}
		plain, err := io.ReadAll(io.LimitReader(reader, maxAnswer+1))
		if len(plain) > maxAnswer {
			return nil, errors.New(tooLarge)
		}
		return plain, err
	}
	return nil, fmt.Errorf("the compression %s is not known", compression)
}

// items returns the objects of a list; false if it is none.
func items(list *unstructured.Unstructured) (objects []*unstructured.Unstructured, ok bool) {
	content, ok := list.Object["items"].([]any)
	if !ok {
		// A list without any is encoded as null by some.
		_, empty := list.Object["items"]
		return nil, empty
	}
	for _, one := range content {
		if fields, ok := one.(map[string]any); ok {
			objects = append(objects, &unstructured.Unstructured{Object: fields})
		}
	}
	return objects, true
}

// nameOf names a version of an object.
func nameOf(object client.Object) *Object {
	kind := object.GetObjectKind().GroupVersionKind()
	o := &Object{
		Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Namespace: object.GetNamespace(), Name: object.GetName(),
		UID: string(object.GetUID()), ResourceVersion: object.GetResourceVersion(), Generation: object.GetGeneration(),
		Deleting: object.GetDeletionTimestamp() != nil, Generated: object.GetGenerateName() != "",
	}
	for _, reference := range object.GetOwnerReferences() {
		owner := Owner{Kind: reference.Kind, Name: reference.Name, UID: string(reference.UID)}
		if version, err := schema.ParseGroupVersion(reference.APIVersion); err == nil {
			owner.Group = version.Group
		}
		owner.Controller = reference.Controller != nil && *reference.Controller
		o.Owners = append(o.Owners, owner)
	}
	return o
}
