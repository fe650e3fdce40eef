// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Asking returns a function that prints a question to out and reads the answer from in. An empty answer selects the
// proposal.
func Asking(in io.Reader, out io.Writer) func(question, proposal string) (string, error) {
	lines := bufio.NewReader(in)
	return func(question, proposal string) (string, error) {
		fmt.Fprintf(out, "%s", question)
		if proposal != "" {
			fmt.Fprintf(out, " [%s]", proposal)
		}
		fmt.Fprint(out, ": ")
		line, err := lines.ReadString('\n')
		answer := strings.TrimSpace(line)
		if err != nil && answer == "" {
			fmt.Fprintln(out)
			if errors.Is(err, io.EOF) {
				return "", errors.New("no answer was given; nothing was written")
			}
			return "", fmt.Errorf("reading the answer: %w", err)
		}
		if answer == "" {
			return proposal, nil
		}
		return answer, nil
	}
}
