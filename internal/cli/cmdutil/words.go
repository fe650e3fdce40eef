// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"context"
	"errors"
	"fmt"
	"strconv"
)

// Files returns "1 file" or "N files".
func Files(n int) string {
	if n == 1 {
		return "1 file"
	}
	return fmt.Sprintf("%d files", n)
}

// Are returns "1 file is" or "N files are".
func Are(n int) string {
	if n == 1 {
		return "1 file is"
	}
	return Files(n) + " are"
}

// Interrupted replaces context.Canceled with a message that no file was changed.
func Interrupted(err error) error {
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted: no file was changed")
	}
	return err
}

// Number formats n, and returns "" for 0.
func Number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// OrDash returns text, or "-" if it is empty.
func OrDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
