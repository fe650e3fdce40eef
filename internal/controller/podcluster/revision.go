// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	kubegroupv1 "github.com/opdock/opdock/api/kubegroup/v1"
	sharedv1 "github.com/opdock/opdock/api/shared/v1"
	"github.com/opdock/opdock/internal/flow"
	"github.com/opdock/opdock/internal/workload"
)

// revision is a template of a PodCluster, now or in the past.
type revision struct {
	hash     string
	template *sharedv1.PodTemplate
	// object is what keeps it.
	object *appsv1.ControllerRevision
}

// revisionData is the content of a ControllerRevision: a part of the spec, with the same field names.
type revisionData struct {
	Spec struct {
		Template *sharedv1.PodTemplate `json:"template"`
	} `json:"spec"`
}

// dataOf encodes a template canonically: equal templates give equal bytes.
func dataOf(template *sharedv1.PodTemplate) ([]byte, error) {
	var data revisionData
	data.Spec.Template = template
	encoded, err := json.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("encoding the template: %w", err)
	}
	return canonical(encoded)
}

// canonical sorts fields, because the server may return them in another order.
func canonical(data []byte) ([]byte, error) {
	var content any
	if err := json.Unmarshal(data, &content); err != nil {
		return nil, fmt.Errorf("decoding a revision: %w", err)
	}
	return json.Marshal(content)
}

// readRevision returns nil for a ControllerRevision without a template: it belongs to another controller, whatever
// its labels are.
func readRevision(cluster string, object *appsv1.ControllerRevision) *revision {
	var data revisionData
	if err := json.Unmarshal(object.Data.Raw, &data); err != nil || data.Spec.Template == nil {
		return nil
	}
	// The name contains the hash as well, and cannot be changed.
	hash, found := strings.CutPrefix(object.Name, cluster+"-")
	if !found {
		return nil
	}
	return &revision{hash: hash, template: data.Spec.Template, object: object}
}

// holds reports whether the revision has this data.
func (r *revision) holds(data []byte) bool {
	own, err := canonical(r.object.Data.Raw)
	return err == nil && bytes.Equal(own, data)
}

// revisionHash is different for each number of collisions.
func revisionHash(data []byte, collisions int32) string {
	hash := fnv.New32a()
	_, _ = hash.Write(data)
	if collisions > 0 {
		_, _ = hash.Write([]byte(strconv.Itoa(int(collisions))))
	}
	return rand.SafeEncodeString(strconv.FormatUint(uint64(hash.Sum32()), 10))
}

// revisionObject is the ControllerRevision that keeps a template.
func revisionObject(cluster *kubegroupv1.PodCluster, data []byte, hash string, number int64) *appsv1.ControllerRevision {
	labels := map[string]string{flow.LabelManagedBy: flow.ManagedBy, labelRevision: hash}
	maps.Copy(labels, selector(cluster))
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: cluster.Name + "-" + hash, Namespace: cluster.Namespace, Labels: labels,
			OwnerReferences: []metav1.OwnerReference{controllerRef(cluster)},
		},
		Data:     runtime.RawExtension{Raw: data},
		Revision: number,
	}
}

// sameButImages reports whether pods of one revision can become pods of another by having the images of their containers
// changed. Init containers do not run again, so their images do not count. The API server does not change the pull policy
// of a pod, so an image with another default policy needs a new one.
func sameButImages(from, to *revision) bool {
	if from == nil || to == nil {
		return false
	}
	return sameContent.DeepEqual(withoutImages(from.template), withoutImages(to.template))
}

// sameContent compares templates.
var sameContent = func() conversion.Equalities {
	equal := apiequality.Semantic.Copy()
	utilruntime.Must(equal.AddFunc(sharedv1.Amount.Equal))
	return equal
}()

func withoutImages(template *sharedv1.PodTemplate) *sharedv1.PodTemplate {
	template = template.DeepCopy()
	for i := range template.Spec.Containers {
		container := &template.Spec.Containers[i]
		container.ImagePullPolicy = cmp.Or(container.ImagePullPolicy, workload.PullPolicy(container.Image))
		container.Image = ""
	}
	return template
}

// changedImages returns the images that differ between two revisions or have drifted in the pod, by the names of
// their containers.
func changedImages(from, to *revision, drift *podDrift) map[string]string {
	before := map[string]string{}
	for _, container := range from.template.Spec.Containers {
		before[container.Name] = container.Image
	}
	changed := map[string]string{}
	if drift != nil {
		// The same containers are in both, or the pod would not be updated in place.
		maps.Copy(changed, drift.images)
	}
	for _, container := range to.template.Spec.Containers {
		if container.Image != before[container.Name] {
			changed[container.Name] = container.Image
		}
	}
	return changed
}
