// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/why"
)

// renewPorts exchanges ports that somebody else has taken. As long as the operator runs, they are its own.
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
		*todo |= workManifests // CRDs tell the API server where it is converted
	}
	return nil
}

// askFlags finds out what the operator can be told.
func (s *Session) askFlags(ctx context.Context, _ *Round, todo *work) error {
	flags, err := askFlags(ctx, s.builder.output, s.Project.Dir, s.Env)
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
	s.plan = newPlan(flags, around, s.Arguments)
	*todo &^= workFlags
	return nil
}

// restart starts the operator, after it has ended the one from before.
func (s *Session) restart(ctx context.Context, round *Round, todo *work) error {
	if s.builder.built == (digest{}) {
		return errors.New("no binary has been built yet")
	}
	if err := s.writeKubeconfig(ctx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err // from here on the operator is restarted, whatever changes meanwhile
	}
	verb := "started"
	if s.process.running() {
		verb = "restarted"
		if s.process.stop(stopGrace) {
			verb = fmt.Sprintf("killed and restarted, because it did not stop within %s", Duration(stopGrace))
		}
	}
	s.Observer.End()
	s.releaseLease(ctx, s.process)
	if s.manifests.serves() {
		if err := checkPort(s.plan.webhookPort); err != nil {
			return err
		}
	}
	s.lens.begin(userOf(s.manifests.identity), s.builder.isInstrumented())
	advice := newAdvice(s.Screen.Say)
	next, err := startProcess(processSpec{
		binary: s.builder.output, dir: s.Project.Dir, args: s.plan.args, env: s.environment(),
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
	s.Observer.Begin(s.plan.records)
	*todo &^= workRestart
	*todo |= workWebhooks | workAwait
	round.Steps = append(round.Steps, Step{Name: stepRestart, Text: verb})
	return nil
}

// configureWebhooks tells the API server where the webhooks are.
func (s *Session) configureWebhooks(ctx context.Context, _ *Round, todo *work) error {
	if s.Cluster.CallsBack && s.manifests.serves() {
		if err := s.certificates.awaitWebhooks(ctx, s.process, s.plan.webhookPort); err != nil {
			return err
		}
		local := make([]*unstructured.Unstructured, 0, len(s.manifests.webhooks))
		for _, one := range s.manifests.webhooks {
			local = append(local, localWebhooks(one, s.plan.webhookPort, s.certificates.authority))
		}
		s.configured = local
		if _, err := s.applier.apply(ctx, local); err != nil {
			return err
		}
	}
	*todo &^= workWebhooks
	return nil
}

// await waits until the operator does its work.
func (s *Session) await(ctx context.Context, round *Round, todo *work) error {
	reached := s.process.awaitReady(ctx, s.plan.probe)
	if reached == "" {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return errEnded
	}
	round.State, round.After = string(reached), Duration(time.Since(s.process.began))
	s.Observer.Works()
	*todo &^= workAwait
	return nil
}

// writeKubeconfig gives the operator an identity.
func (s *Session) writeKubeconfig(ctx context.Context) error {
	content := s.Cluster.Kubeconfig
	if identity := s.manifests.identity; identity != nil {
		var err error
		if content, err = s.Cluster.KubeconfigAs(ctx, identity.Namespace, identity.ServiceAccount); err != nil {
			return err
		}
	}
	if s.Lens {
		var err error
		if content, err = s.throughLens(ctx, content); err != nil {
			return err
		}
	}
	if err := writePrivate(s.KubeconfigPath(), content); err != nil {
		return fmt.Errorf("writing the operator's kubeconfig: %w", err)
	}
	return nil
}

func (s *Session) environment() []string {
	forced := []string{"KUBECONFIG=" + s.KubeconfigPath()}
	if s.lens != nil {
		forced = append(forced, lens.HookVariable+"="+s.lens.proxy.HookAddress())
	}
	if s.plan.recordsByVariable {
		forced = append(forced, why.BindAddressVariable+"="+s.plan.records)
	}
	if s.plan.ownCertificates {
		forced = append(forced, "TMPDIR="+s.certificates.tempDir)
	}
	return mergeEnvironments(s.Env, s.manifests.env, forced)
}
