// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
	"sigs.k8s.io/yaml"
)

// ExecAnnotation on a pod defines how its containers answer commands. With a dot and a container's name appended, it
// is for that container.
const ExecAnnotation = "opdock.dev/exec"

// exitNotConfigured is what a shell returns for a command that it cannot run.
const exitNotConfigured = 126

// Answer is the answer to one command. Its value in the annotation is YAML.
type Answer struct {
	// Command is compared with the arguments, joined by single spaces. A * at its end stands for any rest.
	Command string `json:"command"`
	Stdout  string `json:"stdout,omitempty"`
	Stderr  string `json:"stderr,omitempty"`
	// Echo copies standard input to standard output, after Stdout.
	Echo     bool            `json:"echo,omitempty"`
	ExitCode int             `json:"exitCode,omitempty"`
	After    metav1.Duration `json:"after,omitempty"`
}

// answerTo returns the first answer that fits a command.
func answerTo(annotation string, command []string) (Answer, error) {
	var answers []Answer
	if err := yaml.UnmarshalStrict([]byte(annotation), &answers); err != nil {
		return Answer{}, fmt.Errorf("annotation %s is not a list of answers: %w", ExecAnnotation, err)
	}
	given := strings.Join(command, " ")
	for i, answer := range answers {
		if answer.ExitCode < 0 || answer.ExitCode > 255 {
			return Answer{}, fmt.Errorf("annotation %s: the exit code of answer %d must be between 0 and 255, not %d", ExecAnnotation, i+1, answer.ExitCode)
		}
		prefix, isPrefix := strings.CutSuffix(answer.Command, "*")
		if given == answer.Command || (isPrefix && strings.HasPrefix(given, prefix)) {
			return answer, nil
		}
	}
	return Answer{}, fmt.Errorf("no answer to %q is configured; set the annotation %s", given, ExecAnnotation)
}

type executor struct{ target }

// ExecInContainer answers a command as the annotation defines.
func (e executor) ExecInContainer(
	ctx context.Context, _, _, _ string, command []string, in io.Reader, out, errOut io.WriteCloser, tty bool,
	_ <-chan remotecommand.TerminalSize, _ time.Duration,
) error {
	if errOut == nil || tty {
		errOut = out
	}
	annotation, _ := e.annotation(ExecAnnotation)
	answer, err := answerTo(annotation, command)
	if err != nil {
		text := fmt.Sprintf("opdock: container %s of pod %s is simulated: %v\n", e.container, e.pod.Name, err)
		answer = Answer{Stderr: text, ExitCode: exitNotConfigured}
	}
	if answer.After.Duration > 0 {
		select {
		case <-time.After(answer.After.Duration):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for _, part := range []struct {
		to   io.Writer
		text string
	}{{out, answer.Stdout}, {errOut, answer.Stderr}} {
		if part.text == "" || part.to == nil {
			continue
		}
		if _, err := io.WriteString(part.to, part.text); err != nil {
			return fmt.Errorf("answering %q: %w", command, err)
		}
	}
	if answer.Echo && in != nil && out != nil {
		if _, err := io.Copy(out, in); err != nil {
			return fmt.Errorf("answering %q: %w", command, err)
		}
	}
	if answer.ExitCode != 0 {
		return utilexec.CodeExitError{Err: fmt.Errorf("exit code %d", answer.ExitCode), Code: answer.ExitCode}
	}
	return nil
}

type attacher struct {
	server *Server
	target
}

// AttachContainer shows the log of a container, as it shows what its process writes. What is typed goes nowhere.
func (a attacher) AttachContainer(
	ctx context.Context, _, _, _ string, in io.Reader, out, _ io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize,
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if in != nil {
		go func() {
			_, _ = io.Copy(io.Discard, in)
			cancel() // the client has disconnected
		}()
	}
	if out == nil {
		out = discard{}
	}
	text, err := a.server.logOf(a.target)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(out, text); err != nil {
		return fmt.Errorf("attaching: %w", err)
	}
	a.server.follow(ctx, a.target, text, func(more string) error {
		_, err := io.WriteString(out, more)
		return err
	})
	return nil
}

type discard struct{}

func (discard) Write(data []byte) (int, error) { return len(data), nil }
func (discard) Close() error                   { return nil }
