// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-dap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/freeport"
	"github.com/opdock/opdock/internal/testenv"
)

// TestDebugger does what an editor does: it connects, stops the operator in Reconcile, looks at a variable and goes on, and
// does so again after a restart.
func TestDebugger(t *testing.T) {
	delve := testenv.Delve(t)
	port, err := freeport.Find()
	if err != nil {
		t.Fatal(err)
	}
	p := newProject(t, "ship")
	p.env = append(p.env, "PATH="+filepath.Dir(delve)+string(os.PathListSeparator)+os.Getenv("PATH"))
	p.start(t, "--debug", "--debug-port", strconv.Itoa(port))
	p.good(t, "generate", "apply", "build", "apply", "restart")
	server := p.server(t)
	if said := p.said.String(); !strings.Contains(said, fmt.Sprintf("connect to 127.0.0.1:%d (DAP)", port)) {
		t.Errorf("it was not said where to connect: %s", said)
	}

	editor := connectEditor(t, port)
	editor.breakIn(p, "note := &corev1.ConfigMap")
	editor.stopsFor(server, "first")
	editor.proceed()
	greets(t, server, "first", "ahoy, first")
	editor.stopsFor(server, "second") // the breakpoint is still there
	editor.proceed()
	greets(t, server, "second", "ahoy, second")

	// A save replaces an operator that waits at a breakpoint.
	editor.stopsFor(server, "third")
	p.edit(t, controllerFile, `"ahoy, "`, `"hello, "`)
	p.good(t, "build", "restart")
	editor.close()
	// The new operator reconciles all ships in any order. None of them may be left to stop at the next breakpoint.
	for _, name := range []string{"first", "second", "third"} {
		greets(t, server, name, "hello, "+name)
	}

	editor = connectEditor(t, port)
	editor.breakIn(p, "note := &corev1.ConfigMap")
	editor.stopsFor(server, "fourth")
	editor.proceed()
	greets(t, server, "fourth", "hello, fourth")

	// Delve lets an operator wait whose editor disconnects, until one connects again.
	editor.stopsFor(server, "fifth")
	editor.send("disconnect", map[string]any{"terminateDebuggee": false})
	receive[*dap.DisconnectResponse](editor)
	editor.close()
	editor = connectEditor(t, port)
	editor.send("configurationDone", nil)
	greets(t, server, "fifth", "hello, fifth")
	if code := p.stop(t, os.Interrupt); code != 0 {
		t.Errorf("opdock dev ended with %d", code)
	}
}

// editor is the client of a debugger.
type editor struct {
	*testing.T
	conn   net.Conn
	reader *bufio.Reader
	sent   int
	thread int
}

func connectEditor(t *testing.T, port int) *editor {
	t.Helper()
	conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		t.Fatal(err)
	}
	e := &editor{T: t, conn: conn, reader: bufio.NewReader(conn)}
	t.Cleanup(e.close)
	e.send("initialize", map[string]any{"adapterID": "go", "pathFormat": "path", "linesStartAt1": true, "columnsStartAt1": true})
	receive[*dap.InitializeResponse](e)
	e.send("attach", map[string]any{"mode": "remote"})
	receive[*dap.InitializedEvent](e)
	return e
}

func (e *editor) close() { _ = e.conn.Close() }

func (e *editor) send(command string, arguments any) {
	e.Helper()
	e.sent++
	message := map[string]any{"seq": e.sent, "type": "request", "command": command, "arguments": arguments}
	if err := dap.WriteProtocolMessage(e.conn, rawMessage(message)); err != nil {
		e.Fatalf("sending %s: %v", command, err)
	}
}

// rawMessage is a message in the words of the protocol.
type rawMessage map[string]any

// GetSeq implements dap.Message.
func (m rawMessage) GetSeq() int { seq, _ := m["seq"].(int); return seq }

// receive waits for a message. What else arrives does not matter, unless something was refused.
func receive[M dap.Message](e *editor) M {
	e.Helper()
	if err := e.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		e.Fatal(err)
	}
	for {
		message, err := dap.ReadProtocolMessage(e.reader)
		if err != nil {
			var wanted M
			e.Fatalf("waiting for %T: %v", wanted, err)
		}
		if wanted, ok := message.(M); ok {
			return wanted
		}
		if refused, ok := message.(*dap.ErrorResponse); ok {
			e.Fatalf("%s was refused: %s %+v", refused.Command, refused.Message, refused.Body.Error)
		}
	}
}

// breakIn sets a breakpoint at the line of the controller that has a text, and lets the operator go on.
func (e *editor) breakIn(p *project, text string) {
	e.Helper()
	path := filepath.Join(p.dir, controllerFile)
	content, err := os.ReadFile(path)
	if err != nil {
		e.Fatal(err)
	}
	before, _, _ := strings.Cut(string(content), text)
	line := strings.Count(before, "\n") + 1
	e.send("setBreakpoints", map[string]any{"source": map[string]any{"path": path}, "breakpoints": []any{map[string]any{"line": line}}})
	if set := receive[*dap.SetBreakpointsResponse](e).Body.Breakpoints; len(set) != 1 || !set[0].Verified || set[0].Line != line {
		e.Fatalf("the breakpoint at line %d: %+v", line, set)
	}
	e.send("configurationDone", nil)
	receive[*dap.ConfigurationDoneResponse](e)
}

// stopsFor creates a ship, and expects that the operator stops before it greets.
func (e *editor) stopsFor(server client.Client, name string) {
	e.Helper()
	if err := server.Create(e.Context(), ship(name, map[string]any{"greeting": name})); err != nil {
		e.Fatal(err)
	}
	stopped := receive[*dap.StoppedEvent](e)
	if stopped.Body.Reason != "breakpoint" {
		e.Fatalf("it has stopped for another reason: %+v", stopped.Body)
	}
	e.thread = stopped.Body.ThreadId
	e.send("stackTrace", map[string]any{"threadId": e.thread, "levels": 1})
	frames := receive[*dap.StackTraceResponse](e).Body.StackFrames
	if len(frames) == 0 || !strings.HasSuffix(frames[0].Name, "Reconcile") || filepath.Base(frames[0].Source.Path) != filepath.Base(controllerFile) {
		e.Fatalf("it has stopped in %+v", frames)
	}
	e.send("evaluate", map[string]any{"expression": "ship.Spec.Greeting", "frameId": frames[0].Id})
	if got := receive[*dap.EvaluateResponse](e).Body.Result; got != strconv.Quote(name) {
		e.Errorf("ship.Spec.Greeting is %s", got)
	}
	if _, err := get(e.Context(), server, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, name); !apierrors.IsNotFound(err) {
		e.Errorf("the operator went on: %v", err)
	}
}

func (e *editor) proceed() {
	e.Helper()
	e.send("continue", map[string]any{"threadId": e.thread})
	receive[*dap.ContinueResponse](e)
}
