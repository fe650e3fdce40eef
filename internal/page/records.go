// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/opdock/opdock/why"
)

// ReadRecords reads the stream of a recorder's endpoint. Each record is shown to see; so is, without a record, how many there
// were that were gone before they could be sent. It returns io.EOF when the stream ends, or what see returns.
func ReadRecords(body io.Reader, see func(record *why.Record, lost uint64) error) error {
	lines := bufio.NewReader(body)
	var kind string
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			if errors.Is(err, io.EOF) {
				return io.EOF
			}
			return fmt.Errorf("reading records: %w", err)
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch {
		case name == "event":
			kind = value
		case name != "data":
		case kind == "record":
			record := &why.Record{}
			if err := json.Unmarshal([]byte(value), record); err != nil {
				return fmt.Errorf("reading a record: %w", err)
			}
			if err := see(record, 0); err != nil {
				return err
			}
		case kind == "lost":
			var lost struct{ Records uint64 }
			if err := json.Unmarshal([]byte(value), &lost); err != nil {
				return fmt.Errorf("reading how many records were lost: %w", err)
			}
			if err := see(nil, lost.Records); err != nil {
				return err
			}
		}
	}
}
