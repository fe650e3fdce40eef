// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/apis/v1alpha1"
	"sigs.k8s.io/kwok/pkg/config/resources"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"
	"sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/informer"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"
	"sigs.k8s.io/yaml"
)

// leaseDuration and leaseRenewal are the kubelet's. The holder is the same after a restart: the
// leases of another holder would have to run out first.
const (
	leaseDuration = 40 * time.Second
	leaseRenewal  = leaseDuration / 4
	leaseHolder   = User
)

//go:embed stages/*.yaml
var stageFiles embed.FS

// nodeStages are the stages of a node's life, in kwok's form.
func nodeStages() (lifecycle.Lifecycle, error) {
	files, err := stageFiles.ReadDir("stages")
	if err != nil {
		return nil, fmt.Errorf("listing stages: %w", err)
	}
	var stages []*internalversion.Stage
	for _, file := range files {
		data, err := stageFiles.ReadFile("stages/" + file.Name())
		if err != nil {
			return nil, fmt.Errorf("reading stage: %w", err)
		}
		var stage v1alpha1.Stage
		if err := yaml.UnmarshalStrict(data, &stage); err != nil {
			return nil, fmt.Errorf("reading stage %s: %w", file.Name(), err)
		}
		internal, err := internalversion.ConvertToInternalStage(&stage)
		if err != nil {
			return nil, fmt.Errorf("reading stage %s: %w", file.Name(), err)
		}
		stages = append(stages, internal)
	}
	return lifecycle.NewLifecycle(stages)
}

// nodePlayer plays the stages of nodes and renews their leases. It is put together from kwok's
// controllers for nodes and leases rather than from its whole controller, because that one watches
// pods as well, cannot stop renewing a lease while the node exists, and lets pods wait until the lease is held.
type nodePlayer struct {
	changes chan informer.Event[*corev1.Node]
	leases  *controllers.NodeLeaseController
}

// startNodePlayer starts kwok's goroutines. They end with ctx; kwok offers no way to wait for them.
func startNodePlayer(ctx context.Context, client kubernetes.Interface, leases cache.Store, nodes cache.Store, named *addresses) (*nodePlayer, error) {
	stages, err := nodeStages()
	if err != nil {
		return nil, err
	}
	ctx = log.NewContext(ctx, log.NewLogger(&kwokLog{logger: klog.FromContext(ctx)}, log.LevelWarn))

	p := &nodePlayer{changes: make(chan informer.Event[*corev1.Node], 64)}
	player, err := controllers.NewNodeController(controllers.NodeControllerConfig{
		TypedClient:          client,
		Lifecycle:            resources.NewStaticGetter(stages),
		FuncMap:              stageFunctions(named, time.Now),
		PlayStageParallelism: 4,
	})
	if err != nil {
		return nil, fmt.Errorf("building kwok's node controller: %w", err)
	}
	p.leases, err = controllers.NewNodeLeaseController(controllers.NodeLeaseControllerConfig{
		TypedClient:          client,
		HolderIdentity:       leaseHolder,
		LeaseDurationSeconds: uint(leaseDuration / time.Second),
		LeaseParallelism:     4,
		RenewInterval:        leaseRenewal,
		RenewIntervalJitter:  0.04,
		GetLease: func(name string) (*coordinationv1.Lease, bool) {
			return fromStore[*coordinationv1.Lease](leases, corev1.NamespaceNodeLease+"/"+name)
		},
		MutateLeaseFunc: func(lease *coordinationv1.Lease) error {
			if node, ok := fromStore[*corev1.Node](nodes, lease.Name); ok && len(lease.OwnerReferences) == 0 {
				lease.OwnerReferences = []metav1.OwnerReference{
					*metav1.NewControllerRef(node, corev1.SchemeGroupVersion.WithKind("Node")),
				}
				lease.OwnerReferences[0].Controller, lease.OwnerReferences[0].BlockOwnerDeletion = nil, nil
			}
			return nil
		},
	})
	if err != nil {
		return nil, fmt.Errorf("building kwok's lease controller: %w", err)
	}
	if err := player.Start(ctx, p.changes); err != nil {
		return nil, fmt.Errorf("starting kwok's node controller: %w", err)
	}
	if err := p.leases.Start(ctx); err != nil {
		return nil, fmt.Errorf("starting kwok's lease controller: %w", err)
	}
	return p, nil
}

// tell passes a change of a node on to kwok.
func (p *nodePlayer) tell(ctx context.Context, kind informer.EventType, node *corev1.Node) {
	select {
	case p.changes <- informer.Event[*corev1.Node]{Type: kind, Object: node}:
	case <-ctx.Done():
	}
}

func fromStore[T any](store cache.Store, key string) (T, bool) {
	object, exists, err := store.GetByKey(key)
	if err != nil || !exists {
		var none T
		return none, false
	}
	return object.(T), true
}

// kwokLog receives kwok's log, which is one JSON object a line, and passes on what it warns of.
type kwokLog struct {
	logger klog.Logger
}

func (l *kwokLog) Write(line []byte) (int, error) {
	record := map[string]any{"msg": string(line)}
	_ = json.Unmarshal(line, &record) // what is not JSON is passed on as it is
	message := fmt.Sprint("kwok: ", record["msg"])
	failure := record["err"]
	for _, known := range []string{"time", "level", "msg", "source", "err"} {
		delete(record, known)
	}
	var details []any
	for key, value := range record {
		details = append(details, key, value)
	}
	if failure != nil {
		l.logger.Error(fmt.Errorf("%v", failure), message, details...)
	} else {
		l.logger.Info(message, details...)
	}
	return len(line), nil
}
