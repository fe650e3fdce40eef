// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/project"
	"github.com/opdock/opdock/why"
)

const (
	accountInterval = 50 * time.Millisecond
	accountPatience = 10 * time.Second
)

// renewPorts replaces ports that another process has taken. While the operator runs, it uses them itself.
func (s *Session) renewPorts(_ context.Context, _ *Round, todo *work) error {
	if s.process.running() {
		return nil
	}
	before := s.ports
	if err := s.ports.renew(); err != nil {
		return err
	}
	if s.ports != before {
		*todo |= workFlags
	}
	if s.ports.webhooks != before.webhooks {
		*todo |= workManifests // CRDs contain the address of the conversion webhook
	}
	return nil
}

// askFlags reads the flags of the operator.
func (s *Session) askFlags(ctx context.Context, _ *Round, todo *work) error {
	called, err := askUsage(ctx, s.builder.output, s.Project.Dir, s.Env, argumentsIn(s.manifests.all), s.Arguments)
	if err != nil {
		return err
	}
	around := surroundings{
		kubeconfig: s.KubeconfigPath(), probe: net.JoinHostPort(loopback, strconv.Itoa(s.ports.probe)),
		webhookPort: s.ports.webhooks, certificate: s.certificates.dir,
	}
	if s.Observer != (unobserved{}) {
		around.records = net.JoinHostPort(loopback, strconv.Itoa(s.ports.records))
	}
	s.plan, s.called = called.plan(around), called
	*todo &^= workFlags
	return nil
}

// restart starts the operator, after it has ended the one from before.
func (s *Session) restart(ctx context.Context, round *Round, todo *work) error {
	if s.builder.built == (digest{}) {
		return errors.New("no binary has been built yet")
	}
	s.manifests.hostname = s.hostname(s.manifests) // the code may have changed since the manifests were read
	kubeconfig, err := s.writeKubeconfig(ctx)
	if err != nil {
		return err
	}
	if err := makeHome(s.homePath(), lastValue(s.Env, "HOME"), s.KubeconfigPath()); err != nil {
		return err
	}
	if err := s.applyBelongings(ctx); err != nil {
		return err
	}
	if err := s.takeCertificates(ctx); err != nil {
		return err
	}
	files, err := s.layOutFiles()
	if err != nil {
		return err
	}
	visible, hidden := s.tryMounts(files)
	if err := ctx.Err(); err != nil {
		return err // from here on the operator is restarted, whatever changes meanwhile
	}
	verb := "started"
	s.debugger.stop()
	s.debugger = nil
	if s.process.running() {
		verb = "restarted"
		if s.process.stop(stopGrace) {
			verb = fmt.Sprintf("killed and restarted, because it did not stop within %s", Duration(stopGrace))
		}
	}
	s.Observer.End()
	s.releaseLease(ctx, s.process)
	if s.process != nil {
		s.installMissing(ctx, s.process.ready.missing()) // the last process may have exited because it was missing
	}
	if s.manifests.serves() {
		if err := checkPort(s.plan.webhookPort); err != nil {
			return err
		}
	}
	s.lens.begin(recordedAs(s.manifests.identity), s.builder.isInstrumented())
	advice := newAdvice(s.Screen.Say)
	advice.hidden, advice.granted, advice.unbound = hidden, s.grants, s.unboundRole
	next, err := startProcess(processSpec{
		binary: s.builder.output, dir: s.Project.Dir, args: s.plan.args, env: s.environment(), mounts: visible,
		line: func(line string) {
			s.log.line(line)
			s.Screen.Log(line)
			advice.read(line)
		},
	})
	if err != nil {
		return err
	}
	s.process, s.advice = next, advice
	s.lens.ends(next)
	go s.watchConnections(next, kubeconfig)
	s.Observer.Begin(s.plan.records)
	*todo &^= workRestart
	*todo |= workWebhooks | workAwait
	round.Steps = append(round.Steps, Step{Name: stepRestart, Text: verb})
	return s.debug(ctx, next)
}

// configureWebhooks applies the webhook configurations.
func (s *Session) configureWebhooks(ctx context.Context, _ *Round, todo *work) error {
	if s.Cluster.CallsBack && s.manifests.serves() {
		leavesOut := s.manifests.leavesWebhooksOut()
		if leavesOut && s.unserved.is(s.calledAs()) {
			return s.leaveWebhooksOut(ctx, todo)
		}
		fills := len(s.manifests.filledSecrets()) > 0
		if fills {
			// It writes its own authority into the configurations, and serves nothing before it has.
			if err := s.leadWebhooksHere(ctx); err != nil {
				return err
			}
		}
		err := s.awaitWebhooks(ctx)
		if errors.As(err, new(*notServedError)) && ctx.Err() == nil && leavesOut {
			if s.unserved.learn(s.calledAs()) {
				s.Screen.Say(fmt.Sprintf("the operator runs, but does not serve the webhooks of config/webhook on port %d, and its manifests leave them out: "+
					"they are not configured; if it has a flag that turns them on, pass it after --", s.plan.webhookPort))
			}
			return s.leaveWebhooksOut(ctx, todo)
		}
		if err != nil {
			return err
		}
		if err := s.leadWebhooksHere(ctx); err != nil {
			return err
		}
		if fills && slices.ContainsFunc(s.manifests.definitions, converts) {
			if _, _, err := s.applier.applyPart(ctx, partDefinitions, s.onThisCluster(s.manifests.definitions), nil); err != nil {
				return err
			}
		}
	}
	*todo &^= workWebhooks
	return nil
}

// leaveWebhooksOut deletes the configurations of webhooks that an earlier process served. The API server would refuse
// requests because of them.
func (s *Session) leaveWebhooksOut(ctx context.Context, todo *work) error {
	if len(s.configured) > 0 {
		if err := s.applier.removePart(ctx, s.configured); err != nil {
			return err
		}
		s.configured = nil
	}
	*todo &^= workWebhooks
	return nil
}

// leadWebhooksHere applies the webhook configurations.
func (s *Session) leadWebhooksHere(ctx context.Context) error {
	local := make([]*unstructured.Unstructured, 0, len(s.manifests.webhooks))
	for _, one := range s.manifests.webhooks {
		local = append(local, localWebhooks(one, s.plan.webhookPort, s.certificates.authority))
	}
	s.configured = local
	_, _, err := s.applier.applyPart(ctx, partWebhooks, local, nil)
	return err
}

// await waits until the operator does its work.
func (s *Session) await(ctx context.Context, round *Round, todo *work) error {
	reached := lacking
	if !s.lacksNews() {
		reached = s.process.awaitReady(ctx, s.plan.probe)
	}
	for reached == lacking {
		if s.installMissing(ctx, s.process.ready.missing()) {
			// controller-runtime checks for a kind only every ten seconds; a new process finds it at once.
			if err := s.restart(ctx, round, todo); err != nil {
				return err
			}
			reached = s.process.awaitReady(ctx, s.plan.probe)
			continue
		}
		reached = s.process.awaitLacking(ctx, s.plan.probe)
		if !s.lacksNews() {
			break
		}
		if reached != "" {
			reached = lacking // another kind, meanwhile
		}
	}
	switch {
	case reached == "" && ctx.Err() != nil:
		return ctx.Err()
	case reached == "":
		return errEnded
	case reached == lacking:
		*todo &^= workAwait
		return &LackingError{Kinds: s.process.ready.missing()}
	case len(s.process.ready.waitsForRights()) > 0:
		*todo &^= workAwait
		return &deniedError{s.process.ready.waitsForRights()}
	}
	s.process.worked = true
	s.sayLacking()
	round.State, round.After = string(reached), Duration(time.Since(s.process.began))
	s.Observer.Works()
	*todo &^= workAwait
	return nil
}

// writeKubeconfig gives the operator an identity.
func (s *Session) writeKubeconfig(ctx context.Context) (content []byte, err error) {
	content = s.Cluster.Kubeconfig
	if identity := s.manifests.identity; identity != nil {
		if content, err = s.kubeconfigAs(ctx, identity); err != nil {
			return nil, err
		}
	}
	if s.Lens {
		if content, err = s.throughLens(ctx, content); err != nil {
			return nil, err
		}
	}
	if err := writePrivate(s.KubeconfigPath(), content); err != nil {
		return nil, fmt.Errorf("writing the operator's kubeconfig: %w", err)
	}
	return content, nil
}

// kubeconfigAs waits for the account: the one called default is created by the cluster, a moment after its namespace.
func (s *Session) kubeconfigAs(ctx context.Context, identity *project.Identity) (content []byte, err error) {
	var failed error
	err = wait.PollUntilContextTimeout(ctx, accountInterval, accountPatience, true, func(ctx context.Context) (bool, error) {
		content, failed = s.Cluster.KubeconfigAs(ctx, identity.Namespace, identity.ServiceAccount)
		return !apierrors.IsNotFound(failed), nil
	})
	return content, cmp.Or(failed, err)
}

func (s *Session) environment() []string {
	forced := append(lens.Environment(s.KubeconfigPath()), "HOME="+s.homePath())
	if s.inCluster != nil {
		forced = append(forced, s.inCluster.env...)
	}
	if s.lens != nil {
		forced = append(forced, lens.HookVariable+"="+s.lens.proxy.HookAddress())
	}
	if s.plan.recordsByVariable {
		forced = append(forced, why.BindAddressVariable+"="+s.plan.records)
	}
	if s.manifests.hostname != "" {
		forced = append(forced, "HOSTNAME="+s.manifests.hostname)
	}
	if s.plan.ownCertificates {
		forced = append(forced, "TMPDIR="+s.certificates.tempDir)
	}
	return mergeEnvironments(s.Env, s.manifests.env, forced)
}
