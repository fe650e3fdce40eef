// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetcmd

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/cli/clitest"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/testenv"
)

func TestPageFlags(t *testing.T) {
	for name, test := range map[string]struct {
		flags []string
		want  string
	}{
		"reachable from elsewhere": {[]string{"--page-address", "0.0.0.0:8700"}, "served on loopback only"},
		"no port":                  {[]string{"--page-address", "127.0.0.1"}, "missing port"},
		"of a page left out":       {[]string{"--page=false", "--page-address", "127.0.0.1:0"}, "cannot be used with --page=false"},
	} {
		t.Run(name, func(t *testing.T) {
			user := newConsole(nil)
			code, screen := user.Screen(t.Context(), append([]string{"run"}, test.flags...)...)
			clitest.ExpectCode(t, code, cmdutil.ExitUsage)
			if !strings.Contains(screen, test.want) {
				t.Errorf("%q is not in\n%s", test.want, screen)
			}
		})
	}
}

var pageAddress = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// The page of a run shows the tree and the reconciles of that run, and is gone with it.
func TestRunServesThePage(t *testing.T) {
	user, arguments, namespace := onRealCluster(t)
	terminal := &testenv.Buffer{}
	user.Err, user.ErrWidth = terminal, 100
	user.ErrSize = func() (int, int) { return 160, 30 }
	keys := make(chan string)
	user.Keys = func() (<-chan string, func(), error) { return keys, func() {}, nil }
	ended := make(chan int, 1)
	go func() { ended <- user.Run(t.Context(), append(arguments, "--samples", "robot_v1_robot")) }()
	get := func(path string) (string, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, pageAddress.FindString(terminal.String())+path, http.NoBody)
		if err != nil {
			return "", err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return string(body), err
	}
	testenv.Await(t, func() string {
		for path, wanted := range map[string][]string{
			"/":            {"<title>opdock</title>"},
			"/api/tree":    {`"name":"robot-one"`, `"type":"Ready","status":"True"`, `"kind":"Pod"`},
			"/why/records": {`"controller":"robot"`, `"namespace":"` + namespace, `"verb":"`},
		} {
			body, err := get(path)
			if err != nil {
				return err.Error() + "\n" + terminal.String()
			}
			for _, want := range wanted {
				if !strings.Contains(body, want) {
					return path + " lacks " + want + ":\n" + body
				}
			}
		}
		return ""
	})
	keys <- "q"
	clitest.ExpectCode(t, <-ended, cmdutil.ExitOK)
	if body, err := get("/api/tree"); err == nil {
		t.Errorf("the page is still there:\n%s", body)
	}
}
