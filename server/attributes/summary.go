package attributes

import (
	"bytes"
	"encoding/json"
	"iter"
	"slices"
	"strconv"
	"unicode/utf8"
)

// members yields the members of a JSON object, in their order, and stops where the object is
// malformed. Names are as they are written. It does not look into values beyond what it takes to
// find their ends: of a Pod's summary of a kilobyte, only a few dozen bytes are needed.
func members(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		s := scanner{rest: object}
		s.members(yield)
	}
}

// TrimSummary returns a summary without the members whose names begin with "_": they are
// projected for attributes, and nothing else reads them. The result is the summary itself if it has
// no such members or is malformed, and nil if it has no other members.
func TrimSummary(summary []byte) []byte {
	if !bytes.Contains(summary, []byte(`"_`)) {
		return summary
	}
	kept := make([]byte, 0, len(summary))
	s := scanner{rest: summary}
	complete := s.members(func(name, value []byte) bool {
		if len(name) > 0 && name[0] == '_' {
			return true
		}
		kept = append(append(kept, ',', '"'), name...)
		kept = append(append(kept, '"', ':'), value...)
		return true
	})
	if !complete {
		return summary
	}
	if len(kept) == 0 {
		return nil
	}
	kept[0] = '{'
	return append(kept, '}')
}

// scanner takes tokens from the front of rest.
type scanner struct{ rest []byte }

// members takes an object, and reports whether it is complete and all members were yielded.
func (s *scanner) members(yield func(name, value []byte) bool) bool {
	if !s.next('{') {
		return false
	}
	if s.next('}') {
		return true
	}
	for {
		name := s.value()
		if len(name) < 2 || name[0] != '"' || !s.next(':') {
			return false
		}
		value := s.value()
		if len(value) == 0 || !yield(name[1:len(name)-1], value) {
			return false
		}
		if !s.next(',') {
			return s.next('}')
		}
	}
}

// next takes a character, and reports whether it is the next one after white space.
func (s *scanner) next(c byte) bool {
	s.skipSpace()
	if len(s.rest) == 0 || s.rest[0] != c {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

// value takes a value. It is empty if there is none or if it does not end.
func (s *scanner) value() []byte {
	s.skipSpace()
	depth := 0
	for i := 0; i < len(s.rest); i++ {
		switch s.rest[i] {
		case '"':
			end := endOfString(s.rest[i:])
			i += end - 1
			if end > 0 && depth == 0 {
				return s.take(i + 1)
			}
			if end == 0 {
				return nil
			}
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth == 0 {
				return s.take(i + 1)
			}
			if depth < 0 {
				return s.take(i)
			}
		case ',', ':':
			if depth == 0 {
				return s.take(i)
			}
		}
	}
	return nil
}

func (s *scanner) take(n int) []byte {
	value := s.rest[:n]
	s.rest = s.rest[n:]
	for len(value) > 0 && isSpace(value[len(value)-1]) {
		value = value[:len(value)-1]
	}
	return value
}

func (s *scanner) skipSpace() {
	for len(s.rest) > 0 && isSpace(s.rest[0]) {
		s.rest = s.rest[1:]
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// endOfString returns the length of the string with which b begins, or 0 if it does not end.
func endOfString(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return 0
}

// elements yields the elements of a JSON array, and stops where it is malformed.
func elements(array []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		s := scanner{rest: array}
		for separator := byte('['); s.next(separator); separator = ',' {
			value := s.value()
			if len(value) == 0 || !yield(value) {
				return
			}
		}
	}
}

// text decodes a string; anything else is "".
func text(value []byte) (s string) {
	if len(value) < 2 || value[0] != '"' {
		return ""
	}
	return unescape(value[1 : len(value)-1])
}

// unescape decodes what is between the quotes of a string.
func unescape(quoted []byte) (s string) {
	if bytes.IndexByte(quoted, '\\') < 0 && utf8.Valid(quoted) {
		return string(quoted)
	}
	_ = json.Unmarshal(slices.Concat(quote, quoted, quote), &s)
	return s
}

var quote = []byte{'"'}

// texts decodes an array of strings; any other element is "".
func texts(value []byte) []string {
	var list []string
	for v := range elements(value) {
		list = append(list, text(v))
	}
	return list
}

// pairs decodes an object of strings, nil if it is empty; any other value is "".
func pairs(value []byte) map[string]string {
	var m map[string]string
	for name, v := range members(value) {
		if m == nil {
			m = map[string]string{}
		}
		m[unescape(name)] = text(v)
	}
	return m
}

// integer decodes a number; anything else is 0.
func integer(value []byte) int64 {
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
