// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/opdock/opdock/internal/sse"
	"github.com/opdock/opdock/why"
)

// ReadRecords reads the stream of a recorder's endpoint. It calls see with each record, and without a record
// for the number of records that were dropped before they could be sent. It returns io.EOF when the stream
// ends, or the error of see.
func ReadRecords(body io.Reader, see func(record *why.Record, lost uint64) error) error {
	var failed error // of what see and the reader of records say, which is returned as it is
	err := sse.Read(body, func(event, data string) error {
		failed = readRecord(event, data, see)
		return failed
	})
	if failed != nil || errors.Is(err, io.EOF) {
		return err
	}
	return fmt.Errorf("reading records: %w", err)
}

func readRecord(event, data string, see func(record *why.Record, lost uint64) error) error {
	switch event {
	case "record":
		record := &why.Record{}
		if err := json.Unmarshal([]byte(data), record); err != nil {
			return fmt.Errorf("reading a record: %w", err)
		}
		return see(record, 0)
	case "lost":
		var lost struct{ Records uint64 }
		if err := json.Unmarshal([]byte(data), &lost); err != nil {
			return fmt.Errorf("reading how many records were lost: %w", err)
		}
		return see(nil, lost.Records)
	}
	return nil
}
