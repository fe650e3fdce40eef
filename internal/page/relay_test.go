// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opdock/opdock/internal/testenv"
	"github.com/opdock/opdock/why"
)

// operator is a process that records, as far as a relay can tell.
type operator struct {
	*httptest.Server

	recorder *why.Recorder
	version  int
}

func startOperator(t *testing.T) *operator {
	t.Helper()
	o := &operator{recorder: why.New(why.Options{})}
	o.Server = httptest.NewServer(http.StripPrefix("/why", o.recorder.HTTPHandler()))
	t.Cleanup(func() {
		o.CloseClientConnections()
		o.Close()
	})
	return o
}

func (o *operator) address() string { return strings.TrimPrefix(o.URL, "http://") }

// end is what becomes of the connections of a process that ends.
func (o *operator) end() {
	o.CloseClientConnections()
	o.Close()
}

// reconcile lets the operator reconcile a ConfigMap because it has changed.
func (o *operator) reconcile(t *testing.T, name string) {
	t.Helper()
	c := o.recorder.Controller("settings", &corev1.ConfigMap{})
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	made := func() *corev1.ConfigMap {
		o.version++
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, ResourceVersion: strconv.Itoa(o.version)},
			Data:       map[string]string{"version": strconv.Itoa(o.version)},
		}
	}
	c.Handler(&handler.EnqueueRequestForObject{}).Update(t.Context(), event.UpdateEvent{ObjectOld: made(), ObjectNew: made()}, queue)
	request, _ := queue.Get()
	_, err := c.Reconciler(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		return reconcile.Result{}, nil
	})).Reconcile(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
}

// ids are the names and IDs of what a relay serves.
func ids(t *testing.T, server *httptest.Server) string {
	t.Helper()
	_, body := ask(t, server, http.MethodGet, "/why/records", nil)
	var a why.Answer
	if err := json.Unmarshal([]byte(body), &a); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	var all []string
	for _, record := range a.Records {
		if len(record.Causes) != 1 || len(record.Causes[0].Changes) == 0 {
			t.Errorf("a record lacks what led to it: %+v", record)
		}
		all = append(all, fmt.Sprintf("%d:%s", record.ID, record.Object.Name))
	}
	return strings.Join(all, " ")
}

func TestRelayOutlivesTheProcessesOfAnOperator(t *testing.T) {
	relay := NewRelay()
	t.Cleanup(relay.End)
	server := serve(t, Options{Operator: relay})
	first := startOperator(t)
	relay.Begin(first.address())
	relay.Works()
	stream := followStream(t, server, "")
	var told operatorMessage
	for told.State != operatorRecording {
		stream.next(t, "operator", &told)
	}
	first.reconcile(t, "a")
	first.reconcile(t, "b")
	testenv.Eventually(t, "both are there", func() bool { return ids(t, server) == "1:a 2:b" })
	_, summary := ask(t, server, http.MethodGet, "/why/summary", nil)
	if !strings.Contains(summary, `"reconciles":2`) || !strings.Contains(summary, `"last":2`) {
		t.Errorf("it has counted %s", summary)
	}

	// What was said right before the end is read as well.
	first.reconcile(t, "c")
	first.end()
	relay.End()
	for told.State != operatorEnded {
		stream.next(t, "operator", &told)
	}
	if _, summary := ask(t, server, http.MethodGet, "/why/summary", nil); !strings.Contains(summary, `"name":"settings"`) {
		t.Errorf("of a process that has ended it says %s", summary)
	}

	second := startOperator(t)
	second.reconcile(t, "d")
	relay.Begin(second.address())
	for told.State != operatorRecording {
		stream.next(t, "operator", &told)
	}
	if len(told.Starts) != 2 {
		t.Errorf("it was started at %v", told.Starts)
	}
	testenv.Eventually(t, "what the next process records is there", func() bool { return strings.HasSuffix(ids(t, server), ":d") })
	if got := ids(t, server); got != "1:a 2:b 3:c 4:d" && got != "1:a 2:b 3:d" { // what a process sends while it is killed may be lost
		t.Errorf("there are %s", got)
	}
}

// Events that a write led to name the record of it, whose ID is another one here.
func TestRelayKeepsCauses(t *testing.T) {
	relay := NewRelay()
	t.Cleanup(relay.End)
	p := &process{offset: 40}
	relay.take(p, &why.Record{ID: 2, Causes: []why.Cause{{Type: why.Timer}, {Type: why.Updated, Write: &why.WriteRef{Record: 1, Index: 3}}}}, 0)
	got := relay.kept.Records(why.Query{})
	if len(got) != 1 || got[0].ID != 42 || got[0].Causes[1].Write.Record != 41 || got[0].Causes[1].Write.Index != 3 {
		t.Errorf("got %+v", got)
	}
	relay.take(p, nil, 7)
	recorded := httptest.NewRecorder()
	relay.ServeHTTP(recorded, httptest.NewRequest(http.MethodGet, "/summary", nil))
	if body := recorded.Body.String(); !strings.Contains(body, `"records":7`) || !strings.Contains(body, `"last":42`) {
		t.Errorf("got %s", body)
	}
}

// An operator that works and serves nothing is told from one that has only not come so far.
func TestRelayReportsAnOperatorThatDoesNotRecord(t *testing.T) {
	closed := startOperator(t)
	closed.end()
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	for name, address := range map[string]string{
		"no process listens": closed.address(), "another server listens": strings.TrimPrefix(other.URL, "http://"), "it was told to serve nothing": "",
	} {
		t.Run(name, func(t *testing.T) {
			relay := NewRelay()
			t.Cleanup(relay.End)
			server := serve(t, Options{Operator: relay})
			relay.Begin(address)
			stream := followStream(t, server, "")
			var told operatorMessage
			if stream.next(t, "operator", &told); told.State != operatorStarting {
				t.Errorf("it begins with %s", told.State)
			}
			if response, body := ask(t, server, http.MethodGet, "/why/summary", nil); response.StatusCode != http.StatusOK {
				t.Errorf("while it starts: %d %s", response.StatusCode, body)
			}
			relay.Works()
			if stream.next(t, "operator", &told); told.State != operatorSilent {
				t.Errorf("it goes on with %s", told.State)
			}
			if response, body := ask(t, server, http.MethodGet, "/why/summary", nil); response.StatusCode != http.StatusConflict || !strings.Contains(body, "does not use package why") {
				t.Errorf("%d %s", response.StatusCode, body)
			}
		})
	}
}

// What was inferred about an operator counts until it turns out that the operator records itself.
func TestRelayTakesInferredRecords(t *testing.T) {
	t.Parallel()
	inferred := func(id uint64, name string) *why.Record {
		return &why.Record{ID: id, Controller: "settings", Object: why.Object{Kind: "ConfigMap", Namespace: "default", Name: name}, Causes: []why.Cause{{Type: why.Updated, Changes: []why.Change{{Path: "data"}}, Write: &why.WriteRef{Record: id}}}}
	}
	t.Run("it records nothing", func(t *testing.T) {
		t.Parallel()
		relay := NewRelay()
		relay.Inferring = true
		t.Cleanup(relay.End)
		server := serve(t, Options{Operator: relay})
		relay.Begin("")
		relay.Infer(inferred(1, "a"))
		if got := ids(t, server); got != "" {
			t.Errorf("before it is known whether it records, there are %s", got)
		}
		relay.Works()
		testenv.Eventually(t, "the record is there", func() bool { return ids(t, server) == "1:a" })
		relay.Infer(inferred(2, "b"))
		relay.End()
		relay.Begin("")
		relay.Works()
		relay.Infer(inferred(1, "c")) // of another session of the lens
		testenv.Eventually(t, "the record of the next process is there", func() bool { return ids(t, server) == "1:a 2:b 3:c" })
		if got := relay.kept.Records(why.Query{Name: "c"}); got[0].Causes[0].Write.Record != 3 {
			t.Errorf("its cause is %+v", got[0].Causes[0].Write)
		}
		if _, body := ask(t, server, http.MethodGet, "/why/summary", nil); !strings.Contains(body, `"reconciles":3`) || !strings.Contains(body, `"name":"settings"`) {
			t.Errorf("the summary is %s", body)
		}
	})
	t.Run("it reconciles, but one of its controllers never starts", func(t *testing.T) {
		t.Parallel()
		relay := NewRelay()
		relay.Inferring = true
		t.Cleanup(relay.End)
		server := serve(t, Options{Operator: relay})
		relay.Begin("")
		relay.Infer(inferred(1, "a"))
		testenv.Eventually(t, "the record is there", func() bool { return ids(t, server) == "1:a" })
		relay.Infer(inferred(2, "b"))
		testenv.Eventually(t, "so is the next", func() bool { return ids(t, server) == "1:a 2:b" })
	})
	t.Run("it records itself", func(t *testing.T) {
		t.Parallel()
		relay := NewRelay()
		relay.Inferring = true
		t.Cleanup(relay.End)
		server := serve(t, Options{Operator: relay})
		process := startOperator(t)
		relay.Begin(process.address())
		relay.Infer(inferred(1, "early"))
		process.reconcile(t, "own")
		testenv.Eventually(t, "what it records is there", func() bool { return ids(t, server) == "1:own" })
		relay.Works()
		relay.Infer(inferred(2, "late"))
		process.reconcile(t, "again")
		testenv.Eventually(t, "only what it records is there", func() bool { return ids(t, server) == "1:own 2:again" })
	})
	t.Run("it records itself, but begins late", func(t *testing.T) {
		t.Parallel()
		relay := NewRelay()
		relay.Inferring = true
		t.Cleanup(relay.End)
		server := serve(t, Options{Operator: relay})
		process := startOperator(t)
		var serves atomic.Bool
		late := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !serves.Load() {
				http.NotFound(w, r)
				return
			}
			process.Config.Handler.ServeHTTP(w, r)
		}))
		t.Cleanup(func() {
			relay.End()
			late.CloseClientConnections()
			late.Close()
		})
		relay.Begin(strings.TrimPrefix(late.URL, "http://"))
		relay.Infer(inferred(1, "early"))
		relay.Works()
		testenv.Eventually(t, "the record is there", func() bool { return ids(t, server) == "1:early" })
		process.reconcile(t, "own")
		serves.Store(true)
		testenv.Eventually(t, "what it records is there", func() bool { return ids(t, server) == "1:early 2:own" })
		relay.Infer(inferred(2, "late"))
		process.reconcile(t, "again")
		testenv.Eventually(t, "only what it records is there", func() bool { return ids(t, server) == "1:early 2:own 3:again" })
		if _, body := ask(t, server, http.MethodGet, "/why/summary", nil); !strings.Contains(body, `"reconciles":2`) {
			t.Errorf("the summary is %s", body)
		}
	})
}
