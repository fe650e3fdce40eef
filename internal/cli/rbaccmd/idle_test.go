// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rbaccmd

import (
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/rights/rehearse"
)

// idleShip is an operator that waits for a kind.
var idleShip = rehearse.Idle{
	Untouched: []rehearse.Kind{{Group: "sea.example.com", Kind: "Frigate"}}, All: true, Controllers: []string{"frigate"}, Lacking: []string{"kind Lamp of other.io"},
}

func TestVerifyOfAnOperatorThatDoesNothing(t *testing.T) {
	refused := []rehearse.Outcome{{Act: "start", Refused: []rehearse.Refusal{{Verb: "list", Message: "no"}}}}
	for name, test := range map[string]struct {
		format   string
		result   verified
		code     int
		out, err string
	}{
		"nothing is reconciled": {
			formatText, verified{Idle: idleShip}, 1, "",
			"opdock: --verify proves nothing: the operator reconciled no Frigate; controller frigate did not start; the cluster does not have kind Lamp of other.io\n  neither",
		},
		"as JSON":               {formatJSON, verified{Idle: idleShip}, 1, `"untouched": [`, "--verify proves nothing"},
		"rights explain it":     {formatText, verified{Acts: refused, Idle: idleShip}, 1, "refused: list", "Recording: "},
		"for an unknown reason": {formatText, verified{Idle: rehearse.Idle{Untouched: idleShip.Untouched, All: true}}, 1, "", `"opdock dev" to see why`},
		"one kind of several":   {formatText, verified{Idle: rehearse.Idle{Untouched: idleShip.Untouched}}, 0, "No request was refused.\n", "! the operator reconciled no Frigate: the rights for that were not tried\n"},
		"admission refuses": {
			formatText, verified{Acts: []rehearse.Outcome{{Act: "start", Denied: []rehearse.Refusal{{Verb: "list", Message: "a quota"}, {Verb: "list", Message: "a quota"}}}}}, 0,
			"No request was refused for lack of a right of the operator.\n", "! refused, but not for lack of a right of the operator: list  during \"start\": a quota (2 times)\n",
		},
		"a client without the credential": {formatText, verified{Strangers: 2}, 1, "", "--verify proves nothing: the operator sent 2 requests without the credential in its kubeconfig"},
		"everything is as it is":          {formatText, verified{}, 0, "No request was refused.\n", "Recording: "},
	} {
		t.Run(name, func(t *testing.T) {
			s := newConsole(nil)
			code := s.Report(verbs{s.App}.showVerified(rbacOptions{format: test.format}, test.result))
			if code != test.code || !strings.Contains(s.OutText.String(), test.out) || !strings.Contains(s.ErrText.String(), test.err) {
				t.Errorf("exit code %d, printed\n%s\nand\n%s", code, s.OutText, s.ErrText)
			}
			if test.code != 0 && strings.Contains(s.OutText.String(), "No request was refused") {
				t.Errorf("it looks as if it went well:\n%s", s.OutText)
			}
		})
	}
}

// What an operator did not do would look unneeded.
func TestRecordingOfAnOperatorThatDoesNothing(t *testing.T) {
	notes, err := judgeRecorded(rbacOptions{record: true}, &rehearse.Result{Idle: idleShip})
	if err != nil || len(notes) != 1 || !strings.Contains(notes[0], "the operator reconciled no Frigate") || !strings.Contains(notes[0], "add the CRD to a folder of the project") {
		t.Errorf("the notes are %q, the error is %v", notes, err)
	}
	if _, err = judgeRecorded(rbacOptions{record: true, write: true}, &rehearse.Result{Idle: idleShip}); err == nil || !strings.Contains(err.Error(), "no marker was changed") {
		t.Errorf("with --write, the error is %v", err)
	}
	if notes, err = judgeRecorded(rbacOptions{record: true}, &rehearse.Result{Strangers: 1}); err != nil || len(notes) != 1 || !strings.Contains(notes[0], "1 request without the credential") {
		t.Errorf("of a client without the credential: %q, %v", notes, err)
	}
	if _, err = judgeRecorded(rbacOptions{record: true, write: true}, &rehearse.Result{Strangers: 1}); err == nil || !strings.Contains(err.Error(), "no marker was changed") {
		t.Errorf("with --write and such a client, the error is %v", err)
	}
	if notes, err = judgeRecorded(rbacOptions{record: true, write: true}, &rehearse.Result{}); err != nil || len(notes) > 0 {
		t.Errorf("if all is well: %q, %v", notes, err)
	}
}
