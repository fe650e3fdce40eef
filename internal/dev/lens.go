// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/project"
	"github.com/opdock/opdock/internal/story"
)

// settleInterval is the interval of checks whether a reconcile of the operator is complete.
const settleInterval = 250 * time.Millisecond

// lensing is how a session observes its operator from outside. All requests of the operator go through a lens; its
// events are recorded and passed on.
type lensing struct {
	proxy     *lens.Lens
	recording *lens.Recording

	mutex  sync.Mutex // of teller, unmarked and refused
	teller *story.Teller
	// strangers counts the requests that the lens refused because of their credential.
	strangers func() uint64
	// say shows a message. Unmarked means that it was said that the operator marks nothing, and refused that requests
	// had another credential.
	say               func(string)
	unmarked, refused bool

	stop    context.CancelFunc
	working sync.WaitGroup
	// running are the processes whose end is not reported yet.
	running sync.WaitGroup
}

// RecordingsDir is where a session keeps its recordings.
func (s *Session) RecordingsDir() string { return filepath.Join(s.StateDir, "recordings") }

// throughLens starts a lens with the identity of a kubeconfig, and returns the kubeconfig of the lens.
func (s *Session) throughLens(ctx context.Context, kubeconfig []byte) ([]byte, error) {
	loaded, err := clientcmd.NewClientConfigFromBytes(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the operator's kubeconfig: %w", err)
	}
	config, err := loaded.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the operator's kubeconfig: %w", err)
	}
	if s.lens != nil {
		if err := s.lens.proxy.Forward(config, userOf(s.manifests.identity)); err != nil {
			return nil, err
		}
		return s.lens.proxy.Kubeconfig()
	}
	namespace, _, err := loaded.Namespace()
	if err != nil {
		return nil, fmt.Errorf("reading the operator's kubeconfig: %w", err)
	}
	proxy, err := lens.Start(context.WithoutCancel(ctx), lens.Options{
		Upstream: config, Near: s.Cluster.CallsBack, User: userOf(s.manifests.identity), Namespace: namespace,
	})
	if err != nil {
		return nil, err
	}
	if s.lens, err = s.follow(proxy); err != nil {
		return nil, errors.Join(err, proxy.Close())
	}
	return proxy.Kubeconfig()
}

// follow records the events of a lens, and passes them to the observer.
func (s *Session) follow(proxy *lens.Lens) (*lensing, error) {
	name := lens.RecordingPath(s.RecordingsDir(), time.Now(), "")
	header := lens.Header{Project: s.Project.Name, Cluster: s.Cluster.Config.Host, Identity: recordedAs(s.manifests.identity)}
	if err := lens.RemoveOldest(name, header, lens.KeptRecordings); err != nil {
		return nil, err
	}
	recording, err := lens.Record(proxy.Stream(), name, header, 0)
	if err != nil {
		return nil, err
	}
	if s.Lensed != nil {
		s.Lensed(proxy.Stream())
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &lensing{proxy: proxy, recording: recording, teller: story.New(s.Observer.Infer), strangers: proxy.Strangers, say: s.Screen.Say, stop: cancel}
	l.working.Go(func() {
		for event, lost := range proxy.Stream().Follow(context.Background(), 0) {
			l.mutex.Lock()
			if lost > 0 {
				l.teller.Missed()
			}
			l.teller.Add(event)
			l.mutex.Unlock()
		}
	})
	l.working.Go(func() {
		ticker := time.NewTicker(settleInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-ticker.C:
				l.settle(now)
			}
		}
	})
	return l, nil
}

// settle passes on the reconciles that are complete, and says once if they are only grouped, and if requests are refused.
func (l *lensing) settle(now time.Time) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.teller.Settle(now)
	if !l.unmarked && l.teller.LacksMarks(now) {
		l.unmarked = true
		l.say(inferred + "none of them belongs to a reconcile of controller-runtime")
	}
	if !l.refused && l.strangers() > 0 {
		l.refused = true
		l.say("a request reached the proxy of this session without the credential in the operator's kubeconfig, and was refused: " +
			"if the operator sent it, let it use the whole file, not only its server")
	}
}

// recordedAs returns who the operator is in recordings. Without rights for a service account, it runs as an administrator.
func recordedAs(identity *project.Identity) string {
	return cmp.Or(userOf(identity), lens.Administrator)
}

// begin reports that a process is started. The one from before has ended.
func (l *lensing) begin(identity string, instrumented bool) {
	if l != nil {
		l.running.Wait()
		l.proxy.Note(lens.Event{Process: &lens.Process{Started: true, Identity: identity, Instrumented: instrumented}})
	}
}

// ends reports the end of a process when it comes.
func (l *lensing) ends(p *process) {
	if l == nil {
		return
	}
	l.running.Go(func() {
		<-p.done
		how := "was stopped"
		if p.crashed() {
			how = p.how()
		}
		l.proxy.Note(lens.Event{Process: &lens.Process{Ended: true, How: how}})
	})
}

// close returns when all events are recorded and passed on. The operator has ended.
func (l *lensing) close() error {
	if l == nil {
		return nil
	}
	l.running.Wait()
	err := l.proxy.Close()
	l.stop()
	l.working.Wait()
	l.teller.Flush()
	return errors.Join(err, l.recording.Close())
}
