// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// JSON writes the report for programs and for [Read].
func JSON(w io.Writer, r *Report) error {
	s := r.sorted()
	s.Format = Format
	// An empty list is a list: programs need not expect null.
	s.Steps = notNil(s.Steps)
	s.Families = notNil(s.Families)
	s.Findings = notNil(s.Findings)
	s.Blind = notNil(s.Blind)
	for i := range s.Findings {
		s.Findings[i].Runs = notNil(s.Findings[i].Runs)
	}
	return writeJSON(w, s)
}

func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// writeJSON leaves characters that mean something in HTML as they are: people read these files, too.
func writeJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// Read reads a report that [JSON] wrote.
func Read(from io.Reader) (*Report, error) {
	data, err := io.ReadAll(from)
	if err != nil {
		return nil, fmt.Errorf("reading the report: %w", err)
	}
	text := bytes.TrimSpace(data)
	if len(text) == 0 {
		return nil, errors.New("the report is empty: the campaign may have been killed before it wrote it; run it again")
	}
	if text[0] != '{' {
		return nil, errors.New("not a report of opdock prove: it does not begin with {; name the JSON report of a campaign")
	}
	// The format comes first, because a newer one may differ in anything else.
	var header struct {
		Format *int   `json:"format"`
		Opdock string `json:"opdock"`
	}
	switch err := json.Unmarshal(data, &header); {
	case isCut(data, err):
		return nil, fmt.Errorf("the report ends at %s in the middle: opdock was killed or the disk was full when it was written; run the campaign again",
			position(data, len(text)))
	case err != nil:
		return nil, explain(data, err)
	case header.Format == nil || *header.Format < 1:
		return nil, errors.New("not a report of opdock prove: it is JSON, but its field \"format\" is not a positive number")
	case *header.Format > Format:
		return nil, fmt.Errorf("the report has format %d, written by opdock %s; this opdock reads up to format %d: use a newer opdock",
			*header.Format, visible(orUnknown(header.Opdock)), Format)
	}
	r := &Report{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, explain(data, err)
	}
	if r.Campaign == "" {
		return nil, errors.New("not a report of opdock prove: it is JSON, but it has no field \"campaign\"")
	}
	return r, nil
}

func orUnknown(version string) string {
	if version == "" {
		return "(unknown version)"
	}
	return version
}

// isCut reports whether JSON is right as far as it goes, and ends too early.
func isCut(data []byte, err error) bool {
	syntax := (*json.SyntaxError)(nil)
	if !errors.As(err, &syntax) {
		return false
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	var value json.RawMessage
	return errors.Is(decoder.Decode(&value), io.ErrUnexpectedEOF)
}

// explain adds line and column to an error of package json.
func explain(data []byte, err error) error {
	syntax, kind := (*json.SyntaxError)(nil), (*json.UnmarshalTypeError)(nil)
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("not a report of opdock prove: %s: %w", position(data, int(syntax.Offset)), err)
	case errors.As(err, &kind):
		return fmt.Errorf("not a report of opdock prove: %s: field %q is a JSON %s and must be a %s",
			position(data, int(kind.Offset)), kind.Field, kind.Value, kind.Type)
	default:
		return fmt.Errorf("not a report of opdock prove: %w", err)
	}
}

// position returns the line and column of a byte.
func position(data []byte, offset int) string {
	before := data[:min(max(offset, 0), len(data))]
	line := bytes.Count(before, []byte{'\n'}) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n') - 1
	return fmt.Sprintf("line %d, column %d", line, max(column, 1))
}
