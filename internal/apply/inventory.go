// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// inventoryLabel marks the ConfigMaps that hold inventories. Its value is the verb.
	inventoryLabel = "opdock.dev/inventory"
	// projectAnnotation is the project that the objects belong to.
	projectAnnotation = "opdock.dev/project"
	// sessionAnnotation names the session that uses the objects.
	sessionAnnotation = "opdock.dev/session"
)

// The verbs that sets are named after, and the parts of deploy.
const (
	VerbDev    = "dev"
	VerbDeploy = "deploy"

	PartInstall = "install"
	PartDeploy  = "deploy"
)

// InventoryNamespace returns the namespace of inventories: kube-system on Opdock's clusters, and on others
// the user's namespace.
func InventoryNamespace(ours bool, namespace string) string {
	if ours {
		return metav1.NamespaceSystem
	}
	return namespace
}

// SessionHere names a session of this process, for the inventory of what it uses.
func SessionHere() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("pid %d on %s", os.Getpid(), host)
}

// Elsewhere reports whether the session runs on another machine.
func (i *Inventory) Elsewhere() bool {
	_, here, _ := strings.Cut(SessionHere(), " on ")
	_, there, found := strings.Cut(i.Session, " on ")
	return found && here != there
}

// Set is a set of objects that a verb applies for a project, or a part of them. A ConfigMap on the cluster
// lists its members.
type Set struct {
	// Project and Verb name the set. All parts of a set are in one ConfigMap.
	Project, Verb string
	// Part is one of the parts that are applied and pruned independently of each other.
	Part string
	// Namespace is where the ConfigMap is.
	Namespace string
}

// NamePrefix is how the names of all inventories begin.
const NamePrefix = "opdock-inventory-"

// Name is the name of the ConfigMap.
func (s *Set) Name() string { return NamePrefix + strings.ToLower(s.Project) + "-" + s.Verb }

// Member is an object of a set.
type Member struct {
	ID      `json:",inline"`
	Version string `json:"version"`
	// UID distinguishes the applied object from one that was created later with the same name. It is empty if the
	// process ended before the object was applied.
	UID types.UID `json:"uid,omitempty"`
}

// object is the member, to be read or deleted.
func (m Member) object() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: m.Group, Version: m.Version, Kind: m.Kind})
	object.SetNamespace(m.Namespace)
	object.SetName(m.Name)
	return object
}

func memberOf(object *unstructured.Unstructured) Member {
	return Member{ID: IDOf(object), Version: object.GroupVersionKind().Version, UID: object.GetUID()}
}

// Members returns objects as members that were not applied yet.
func Members(objects []*unstructured.Unstructured) []Member {
	members := make([]Member, 0, len(objects))
	for _, object := range objects {
		members = append(members, memberOf(object))
	}
	return members
}

// Inventory is the record of a set on a cluster.
type Inventory struct {
	Set
	// Session names the session that currently uses the objects; empty if there is none. A killed session may
	// still be named.
	Session string
	// Parts are the members.
	Parts map[string][]Member
}

// Members returns the members of all parts, each of them once.
func (i *Inventory) Members() []Member {
	var all []Member
	for _, members := range i.Parts {
		for _, one := range members {
			if !slices.ContainsFunc(all, func(other Member) bool { return other.ID == one.ID }) {
				all = append(all, one)
			}
		}
	}
	slices.SortFunc(all, func(a, b Member) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// Objects returns members as objects that can be deleted.
func Objects(members []Member) []*unstructured.Unstructured {
	objects := make([]*unstructured.Unstructured, 0, len(members))
	for _, one := range members {
		objects = append(objects, one.object())
	}
	return objects
}

// Inventory reads the inventory of a set. An unknown set has no parts.
func (s *Server) Inventory(ctx context.Context, set *Set) (*Inventory, error) {
	var file corev1.ConfigMap
	err := s.client.Get(ctx, client.ObjectKey{Namespace: set.Namespace, Name: set.Name()}, &file)
	if apierrors.IsNotFound(err) {
		return &Inventory{Set: *set, Parts: map[string][]Member{}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading inventory %s/%s: %w", set.Namespace, set.Name(), err)
	}
	return decodeInventory(&file)
}

// Inventories returns all inventories on the cluster, or those of a namespace if the user may not list
// others.
func (s *Server) Inventories(ctx context.Context, namespace string) ([]*Inventory, error) {
	var files corev1.ConfigMapList
	err := s.client.List(ctx, &files, client.HasLabels{inventoryLabel})
	if apierrors.IsForbidden(err) {
		err = s.client.List(ctx, &files, client.HasLabels{inventoryLabel}, client.InNamespace(namespace))
	}
	if apierrors.IsForbidden(err) {
		return nil, nil // who may not see any has made none
	}
	if err != nil {
		return nil, fmt.Errorf("listing inventories: %w", err)
	}
	var all []*Inventory
	for i := range files.Items {
		one, err := decodeInventory(&files.Items[i])
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

func decodeInventory(file *corev1.ConfigMap) (*Inventory, error) {
	inventory := &Inventory{
		Set: Set{
			Project: file.Annotations[projectAnnotation], Verb: file.Labels[inventoryLabel], Namespace: file.Namespace,
		},
		Session: file.Annotations[sessionAnnotation], Parts: map[string][]Member{},
	}
	for part, text := range file.Data {
		var members []Member
		if err := json.Unmarshal([]byte(text), &members); err != nil {
			return nil, fmt.Errorf("decoding %s of inventory %s/%s: %w; if it was edited by hand, delete the ConfigMap", part, file.Namespace, file.Name, err)
		}
		inventory.Parts[part] = members
	}
	return inventory, nil
}

// encodeMembers writes one member to a line, for people who read it.
func encodeMembers(members []Member) (string, error) {
	lines := make([]string, 0, len(members))
	for _, one := range members {
		encoded, err := json.Marshal(one)
		if err != nil {
			return "", fmt.Errorf("encoding an inventory: %w", err)
		}
		lines = append(lines, string(encoded))
	}
	return "[" + strings.Join(lines, ",\n ") + "]\n", nil
}

// Update changes an inventory. One without members and session is deleted.
func (s *Server) Update(ctx context.Context, set *Set, change func(*Inventory)) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		file := &corev1.ConfigMap{}
		file.Namespace, file.Name = set.Namespace, set.Name()
		err := s.client.Get(ctx, client.ObjectKeyFromObject(file), file)
		isNew := apierrors.IsNotFound(err)
		if err != nil && !isNew {
			return err
		}
		before := file.DeepCopy()
		inventory, err := decodeInventory(file)
		if err != nil {
			return err
		}
		change(inventory)
		if err := inventory.encode(set, file); err != nil {
			return err
		}
		switch gone := len(file.Data) == 0 && inventory.Session == ""; {
		case gone && isNew:
			return nil
		case gone:
			return client.IgnoreNotFound(s.client.Delete(ctx, file, client.Preconditions{ResourceVersion: &before.ResourceVersion}))
		case isNew:
			return alreadyExistsIsConflict(s.client.Create(ctx, file))
		default:
			return s.client.Patch(ctx, file, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		}
	})
	if err != nil {
		return fmt.Errorf("writing inventory %s/%s: %w", set.Namespace, set.Name(), err)
	}
	return nil
}

func (i *Inventory) encode(set *Set, file *corev1.ConfigMap) error {
	file.Labels = map[string]string{inventoryLabel: set.Verb}
	file.Annotations = map[string]string{projectAnnotation: set.Project}
	if i.Session != "" {
		file.Annotations[sessionAnnotation] = i.Session
	}
	file.Data = map[string]string{}
	for part, members := range i.Parts {
		if len(members) == 0 {
			continue
		}
		text, err := encodeMembers(members)
		if err != nil {
			return err
		}
		file.Data[part] = text
	}
	return nil
}

// alreadyExistsIsConflict makes the second of two concurrent writers retry with the content of the first.
func alreadyExistsIsConflict(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return apierrors.NewConflict(corev1.Resource("configmaps"), "", err)
	}
	return err
}
