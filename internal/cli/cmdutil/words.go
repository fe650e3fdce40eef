// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"context"
	"errors"
	"fmt"
	"strconv"
)

func Files(n int) string {
	if n == 1 {
		return "1 file"
	}
	return fmt.Sprintf("%d files", n)
}

func Are(n int) string {
	if n == 1 {
		return "1 file is"
	}
	return Files(n) + " are"
}

func Interrupted(err error) error {
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted: no file was changed")
	}
	return err
}

func Number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func OrDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
