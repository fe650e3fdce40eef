// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"encoding/binary"
	"errors"
	"mime"

	"k8s.io/apimachinery/pkg/runtime"
)

// encoding is how a body is written.
type encoding string

const (
	encodedJSON     encoding = "json"
	encodedProtobuf encoding = "protobuf"
	encodedOther    encoding = ""
)

// encodingOf reads a Content-Type.
func encodingOf(contentType string) (as encoding, mediaType string) {
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return encodedOther, contentType
	}
	switch mediaType {
	case runtime.ContentTypeJSON, "application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json":
		return encodedJSON, mediaType
	case runtime.ContentTypeProtobuf:
		return encodedProtobuf, mediaType
	}
	return encodedOther, mediaType
}

// maxFrame is more than an event of a watch can take: the API server stores no object of this size.
const maxFrame = 16 << 20

var errFrame = errors.New("a watch event is too large")

// splitter splits the body of a watch into events. It keeps incomplete events.
type splitter struct {
	as   encoding
	rest []byte

	// JSON: the position in rest, and the open brackets there.
	at      int
	depth   int
	quoted  bool
	escaped bool
}

// add calls see with each complete event. Events are valid only during the call, and in protobuf
// they come without their length prefix.
func (s *splitter) add(data []byte, see func(whole, event []byte)) error {
	s.rest = append(s.rest, data...)
	begin := 0
	for {
		length, skip := s.next(begin)
		if length == 0 {
			break
		}
		whole := s.rest[begin : begin+length]
		see(whole, whole[skip:])
		begin += length
	}
	if begin > 0 {
		s.rest = append(s.rest[:0], s.rest[begin:]...)
		s.at -= begin
	}
	if len(s.rest) > maxFrame {
		s.rest = nil
		return errFrame
	}
	return nil
}

// next returns how long the event is that begins there, 0 if it is not complete, and how many bytes come before its content.
func (s *splitter) next(begin int) (length, skip int) {
	if s.as == encodedProtobuf {
		const prefix = 4
		rest := s.rest[begin:]
		if len(rest) < prefix {
			return 0, 0
		}
		if size := int(binary.BigEndian.Uint32(rest)); len(rest) >= prefix+size {
			return prefix + size, prefix
		}
		return 0, 0
	}
	for ; s.at < len(s.rest); s.at++ {
		if s.step(s.rest[s.at]) {
			s.at++
			return s.at - begin, 0
		}
	}
	return 0, 0
}

// step reads one byte of JSON, and reports whether an object ends with it.
func (s *splitter) step(b byte) bool {
	switch {
	case s.escaped:
		s.escaped = false
	case s.quoted:
		s.escaped = b == '\\'
		s.quoted = b != '"'
	case b == '"':
		s.quoted = true
	case b == '{' || b == '[':
		s.depth++
	case b == '}' || b == ']':
		s.depth--
		return s.depth == 0
	}
	return false
}
