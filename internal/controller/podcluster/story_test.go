// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	kubegroupv1 "github.com/opdock/opdock/api/kubegroup/v1"
	"github.com/opdock/opdock/internal/flow"
)

// TestStories tells whole roll-outs step by step. In each step the plan is carried out, and then the kubelets do their
// part: what is being deleted goes, and what has been made or changed becomes ready, unless its revision is broken.
func TestStories(t *testing.T) {
	for _, story := range []struct {
		name            string
		settings        settings
		pods            string
		current, update string
		broken          string
		// then is what the user changes once nothing happens any more.
		then string
		want string
	}{
		{
			name:     "images are changed in place, two at a time",
			settings: settings{replicas: 5, maxUnavailable: 2, inPlace: true}, pods: "v1/v1/v1/v1/v1", current: "v1", update: "v2",
			want: `
v1/v1/v1/v1/v1        update in place 4 to v2, update in place 3 to v2
v1/v1/v1/v2/v2        update in place 2 to v2, update in place 1 to v2
v1/v2/v2/v2/v2        update in place 0 to v2
v2/v2/v2/v2/v2        v2 is current; ready
`,
		},
		{
			name:     "other changes replace pods, one at a time",
			settings: settings{replicas: 3, maxUnavailable: 1, inPlace: true}, pods: "v1/v1/v1", current: "v1", update: "v2b",
			want: `
v1/v1/v1              delete 2 (another revision)
v1/v1/.               create 2 to v2b
v1/v1/v2b             delete 1 (another revision)
v1/./v2b              create 1 to v2b
v1/v2b/v2b            delete 0 (another revision)
./v2b/v2b             create 0 to v2b
v2b/v2b/v2b           v2b is current; ready
`,
		},
		{
			name:     "a broken template stops at the first pod, and goes on when it is corrected",
			settings: settings{replicas: 3, maxUnavailable: 1, inPlace: true}, pods: "v1/v1/v1", current: "v1", update: "v2b",
			broken: "v2b", then: "v3c",
			want: `
v1/v1/v1              delete 2 (another revision)
v1/v1/.               create 2 to v2b
v1/v1/v2b~            RollingOut
                      the template is changed to v3c
v1/v1/v2b~            delete 2 (another revision)
v1/v1/.               create 2 to v3c
v1/v1/v3c             delete 1 (another revision)
v1/./v3c              create 1 to v3c
v1/v3c/v3c            delete 0 (another revision)
./v3c/v3c             create 0 to v3c
v3c/v3c/v3c           v3c is current; ready
`,
		},
		{
			name:     "a broken image is taken back where it is",
			settings: settings{replicas: 3, maxUnavailable: 1, inPlace: true}, pods: "v1/v1/v1", current: "v1", update: "v2",
			broken: "v2", then: "v1",
			want: `
v1/v1/v1              update in place 2 to v2
v1/v1/v2~             RollingOut
                      the template is changed to v1
v1/v1/v2~             update in place 2 to v1
v1/v1/v1              v1 is current; ready
`,
		},
		{
			name:     "a partition keeps the pods below it, and the template that they are made from",
			settings: settings{replicas: 4, maxUnavailable: 1, inPlace: true, partition: 2}, pods: "v1/v1x/v1/v1", current: "v1", update: "v2",
			want: `
v1/v1x/v1/v1          delete 1 (it has ended: Evicted)
v1/./v1/v1            create 1 to v1
v1/v1/v1/v1           update in place 3 to v2
v1/v1/v1/v2           update in place 2 to v2
v1/v1/v2/v2           ready
`,
		},
		{
			name:     "fewer pods and another template at the same time",
			settings: settings{replicas: 2, maxUnavailable: 1}, pods: "v1/v1/v1/v1", current: "v1", update: "v2",
			want: `
v1/v1/v1/v1           delete 3 (scaled down), delete 2 (scaled down), delete 1 (another revision)
v1/.                  create 1 to v2
v1/v2                 delete 0 (another revision)
./v2                  create 0 to v2
v2/v2                 v2 is current; ready
`,
		},
	} {
		t.Run(story.name, func(t *testing.T) {
			s := story.settings
			s.name, s.deadline = "web", time.Hour+time.Minute
			w := parseWorld(t, s, story.pods)
			w.current = newRevision(story.current)
			n := &narrator{t: t, world: w, broken: story.broken}
			n.become(story.update)
			n.tell()
			if story.then != "" {
				n.say("", "the template is changed to "+story.then)
				n.become(story.then)
				n.tell()
			}
			if got := "\n" + n.text.String(); got != story.want {
				t.Errorf("it went like this:\n%s\nand not like this:\n%s", got, story.want)
			}
		})
	}
}

type narrator struct {
	t      *testing.T
	world  world
	broken string
	text   strings.Builder
}

// become is a change of the template.
func (n *narrator) become(update string) {
	n.world.update = newRevision(update)
	if update == n.world.current.hash {
		n.world.current = n.world.update
	}
	n.world.revisions[update] = n.world.update
}

// tell carries out plans until there is nothing more to do.
func (n *narrator) tell() {
	n.t.Helper()
	for range 20 {
		p := newPlan(n.world)
		if len(p.actions) == 0 {
			n.conclude()
			return
		}
		n.say(n.state(), describePlan(p))
		for _, a := range p.actions {
			n.act(a)
		}
	}
	n.t.Fatalf("it does not end:\n%s", n.text.String())
}

func (n *narrator) conclude() {
	var end []string
	if isComplete(&n.world) {
		n.world.current = n.world.update
		end = append(end, n.world.update.hash+" is current")
	}
	if err := verdict(&n.world); err != nil {
		end = append(end, flow.Reason(err))
	} else {
		end = append(end, "ready")
	}
	n.say(n.state(), strings.Join(end, "; "))
}

// act does to the pods what the controller and then the kubelet would do.
func (n *narrator) act(a action) {
	n.t.Helper()
	switch a.verb {
	case create:
		cluster := &kubegroupv1.PodCluster{}
		cluster.Name = n.world.name
		pod, err := podOf(cluster, a.revision, a.ordinal)
		if err != nil {
			n.t.Fatal(err)
		}
		n.put(a.ordinal, pod.Labels[labelRevision])
	case remove:
		n.drop(a.ordinal)
	case renew:
		pod, err := renewed(a.member.pod, changedImages(n.world.revisions[a.member.hash], a.revision, a.member.drift), a.revision, noon)
		if err != nil {
			n.t.Fatal(err)
		}
		pod.ManagedFields = ownFieldsOf(ownsRenewal)
		if m := memberOf(n.world.name, pod); m.ready {
			n.t.Errorf("pod %d counts as ready before its kubelet has acted", a.ordinal)
		}
		n.drop(a.ordinal)
		n.put(a.ordinal, pod.Labels[labelRevision])
	default:
		n.t.Fatalf("unexpected: %s", a.verb)
	}
}

func (n *narrator) put(ordinal int, hash string) {
	state := ""
	if hash == n.broken {
		state = "~"
	}
	n.world.members = append(n.world.members, memberOf(n.world.name, newPod(n.t, n.world.name, ordinal, hash, state)))
}

func (n *narrator) drop(ordinal int) {
	var left []*member
	for _, m := range n.world.members {
		if m.ordinal != ordinal {
			left = append(left, m)
		}
	}
	n.world.members = left
}

// state is the world in the words of parseWorld.
func (n *narrator) state() string {
	words := make([]string, 0, n.world.replicas)
	for ordinal := range max(n.world.replicas, highest(n.world.members)+1) {
		word := "."
		for _, m := range n.world.members {
			if m.ordinal != ordinal {
				continue
			}
			word = m.hash
			switch {
			case m.ended:
				word += "x"
			case !m.ready:
				word += "~"
			}
		}
		words = append(words, word)
	}
	return strings.Join(words, "/")
}

func highest(members []*member) int {
	result := -1
	for _, m := range members {
		result = max(result, m.ordinal)
	}
	return result
}

func (n *narrator) say(state, what string) {
	fmt.Fprintf(&n.text, "%-22s%s\n", state, what)
}
