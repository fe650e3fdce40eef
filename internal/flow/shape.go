// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/opdock/opdock/client/applyconfiguration"
)

// shapes defines how the server merges the fields of children: which lists and maps are atomic, and which are owned
// item by item.
type shapes struct {
	once sync.Once
	// converters returns those that know types, from the best to one that knows none and treats every list as atomic. The
	// first call reads the schemas of all kinds of Kubernetes, which takes time and some MB. It is not called for children that
	// are as they should be and have only fields in atomicFields.
	converters func() []managedfields.TypeConverter

	mutex sync.Mutex
	// granular caches, by kind and field, what only parsing a whole configuration shows.
	granular map[string]bool
	// orders holds the configurations whose order the server does not keep.
	orders map[ordering]bool
}

// of returns the shapes. The first call sets the scheme of their types.
func (s *shapes) of(scheme *runtime.Scheme) *shapes {
	s.once.Do(func() {
		s.granular = map[string]bool{}
		s.converters = sync.OnceValue(func() []managedfields.TypeConverter {
			return []managedfields.TypeConverter{
				applyconfigurations.NewTypeConverter(scheme), applyconfiguration.NewTypeConverter(scheme), managedfields.NewDeducedTypeConverter(),
			}
		})
	})
	return s
}

// fieldsOf returns the fields that a manager owns after it has applied the configuration.
func (s *shapes) fieldsOf(configuration map[string]any) *fieldpath.Set {
	for _, converter := range s.converters() {
		typed, err := converter.ObjectToTyped(&unstructured.Unstructured{Object: configuration})
		if err != nil {
			continue
		}
		if fields, err := typed.ToFieldSet(); err == nil {
			return fields.Difference(identity)
		}
	}
	return &fieldpath.Set{}
}

// identity holds the fields that identify an object. No manager owns them.
var identity = fieldpath.NewSet(
	fieldpath.MakePathOrDie("apiVersion"), fieldpath.MakePathOrDie("kind"), fieldpath.MakePathOrDie("metadata", "name"),
	fieldpath.MakePathOrDie("metadata", "namespace"), fieldpath.MakePathOrDie("metadata", "uid"),
)

// isGranular reports whether the parts of a field are owned one by one. The configuration must have the field, and parts
// of it.
func (s *shapes) isGranular(kind string, path fieldpath.Path, configuration map[string]any) bool {
	name := fieldName(path)
	if isAtomic(kind, name) {
		return false
	}
	key := kind + "/" + name
	s.mutex.Lock()
	granular, known := s.granular[key]
	s.mutex.Unlock()
	if known {
		return granular
	}
	all := s.fieldsOf(configuration)
	granular = hasPartsAt(all, name)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.granular[key] = granular
	return granular
}

// hasPartsAt reports whether a set has fields below the ones of that name.
func hasPartsAt(fields *fieldpath.Set, name string) (has bool) {
	fields.Iterate(func(path fieldpath.Path) {
		for end := 1; end < len(path) && !has; end++ {
			has = fieldName(path[:end]) == name
		}
	})
	return has
}
