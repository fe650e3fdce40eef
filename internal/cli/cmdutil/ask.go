// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Asking returns a function that prints a question to out and reads the answer from in. An empty answer selects the
// proposal. An answer that check rejects is asked for again. The end of the context ends the question.
func Asking(in io.Reader, out io.Writer) func(ctx context.Context, question, proposal string, check func(string) error) (string, error) {
	lines := bufio.NewReader(in)
	return func(ctx context.Context, question, proposal string, check func(string) error) (string, error) {
		for {
			fmt.Fprintf(out, "%s", question)
			if proposal != "" {
				fmt.Fprintf(out, " [%s]", proposal)
			}
			fmt.Fprint(out, ": ")
			line, err := readLine(ctx, lines)
			answer := strings.TrimSpace(line)
			if err != nil && answer == "" {
				fmt.Fprintln(out)
				if errors.Is(err, io.EOF) {
					return "", errors.New("no answer was given; nothing was written")
				}
				return "", err
			}
			answer = cmp.Or(answer, proposal)
			if check == nil {
				return answer, nil
			}
			wrong := check(answer)
			if wrong == nil {
				return answer, nil
			}
			fmt.Fprintf(out, "  %v\n", wrong)
		}
	}
}

// readLine ends with the context. What is typed after that is lost, but so is the program then.
func readLine(ctx context.Context, lines *bufio.Reader) (string, error) {
	type result struct {
		line string
		err  error
	}
	read := make(chan result, 1)
	go func() {
		line, err := lines.ReadString('\n')
		read <- result{line, err}
	}()
	select {
	case one := <-read:
		if one.err != nil && !errors.Is(one.err, io.EOF) {
			return "", fmt.Errorf("reading the answer: %w", one.err)
		}
		return one.line, one.err
	case <-ctx.Done():
		return "", Interrupted(context.Canceled)
	}
}
