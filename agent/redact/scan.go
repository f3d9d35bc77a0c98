package redact

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// maxDepth bounds the nesting of objects and arrays, because the walk is recursive.
// encoding/json, and so the API server, accepts 10,000 levels; real objects have less than
// 100.
const maxDepth = 512

// syntaxError is the position at which an object is not acceptable JSON. It contains no byte
// of the object, so that it may be logged.
type syntaxError struct {
	at   int
	want string
}

func (e *syntaxError) Error() string {
	return fmt.Sprintf("byte %d: expected %s", e.at, e.want)
}

// scanner moves over JSON by index. It validates everything that it moves over, because
// every other reader must see the same JSON. Like encoding/json, it does not check that
// strings are UTF-8.
//
// It is not the splitter of package jsonstream. It runs over objects that lie whole in memory, eight bytes at a time. The
// splitter runs over a stream that may stop at any byte, and validates only what it needs to find the end of a value. A
// shared scanner would have to check for the end of the buffer at each byte, or to validate twice.
type scanner struct {
	raw            []byte
	depth          int  // open containers around the index
	secretNameSeen bool // skip saw a string value that names a Secret
}

// space returns the index of the first byte at or after i that is not white space.
func (s *scanner) space(i int) int {
	for i < len(s.raw) && s.raw[i] <= ' ' {
		switch s.raw[i] {
		case ' ', '\n', '\t', '\r':
			i++
		default:
			return i
		}
	}
	return i
}

// at returns the byte at i, or 0 at the end. A zero byte is not valid JSON.
func (s *scanner) at(i int) byte {
	if i < len(s.raw) {
		return s.raw[i]
	}
	return 0
}

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// quoted returns the index after the string whose opening quote is at i, and whether the
// string has escapes. It searches eight bytes at a time for a quote, a backslash or a control
// byte. Only the lowest bit of the mask is exact; higher bits may be carries.
func (s *scanner) quoted(i int) (end int, escaped bool, err error) {
	raw := s.raw
	i++
	for uint(i)+8 <= uint(len(raw)) {
		w := binary.LittleEndian.Uint64(raw[i : i+8])
		q, b := w^(lowBits*'"'), w^(lowBits*'\\')
		m := ((q-lowBits)&^q | (b-lowBits)&^b | (w-lowBits*' ')&^w) & highBits
		if m == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(m) >> 3
		if raw[i] == '"' {
			return i + 1, escaped, nil
		}
		n := escapeLen(raw[i:])
		if n == 0 {
			return 0, false, stringError(raw, i)
		}
		i, escaped = i+n, true
	}
	return s.quotedTail(i, escaped)
}

// quotedTail does the same for the last bytes, one at a time.
func (s *scanner) quotedTail(i int, escaped bool) (int, bool, error) {
	for i < len(s.raw) {
		switch c := s.raw[i]; {
		case c == '"':
			return i + 1, escaped, nil
		case c == '\\' || c < ' ':
			n := escapeLen(s.raw[i:])
			if n == 0 {
				return 0, false, stringError(s.raw, i)
			}
			i, escaped = i+n, true
		default:
			i++
		}
	}
	return 0, false, stringError(s.raw, i)
}

func stringError(raw []byte, i int) error {
	if i < len(raw) && raw[i] == '\\' {
		return &syntaxError{i, "an escape sequence"}
	}
	return &syntaxError{i, "the rest of a string"}
}

// escapeLen returns the length of the escape sequence at the start of b, or 0 if it is
// invalid.
func escapeLen(b []byte) int {
	if len(b) < 2 || b[0] != '\\' {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if _, ok := hex4(b[2:]); ok {
			return 6
		}
	}
	return 0
}

// name reads the name of a member and its colon. It returns the name without its quotes,
// with escapes, and the index of the value.
func (s *scanner) name(i int) (name []byte, escaped bool, value int, err error) {
	if s.at(i) != '"' {
		return nil, false, 0, &syntaxError{i, "a member's name"}
	}
	end, escaped, err := s.quoted(i)
	if err != nil {
		return nil, false, 0, err
	}
	value, err = s.colon(end)
	return s.raw[i+1 : end-1], escaped, value, err
}

// skipName is name for callers that do not need the name.
func (s *scanner) skipName(i int) (value int, err error) {
	if s.at(i) != '"' {
		return 0, &syntaxError{i, "a member's name"}
	}
	end, _, err := s.quoted(i)
	if err != nil {
		return 0, err
	}
	if end+1 < len(s.raw) && s.raw[end] == ':' && s.raw[end+1] > ' ' {
		return end + 1, nil
	}
	return s.colon(end)
}

// colon moves past the colon at or after i and returns the index of the value.
func (s *scanner) colon(i int) (int, error) {
	if s.at(i) <= ' ' {
		i = s.space(i)
	}
	if s.at(i) != ':' {
		return 0, &syntaxError{i, "a colon"}
	}
	i++
	if s.at(i) <= ' ' {
		i = s.space(i)
	}
	return i, nil
}

// open moves past the bracket at i to the first element or member. If there is none, more is
// false, and next is after the container.
func (s *scanner) open(i int, closer byte) (next int, more bool, err error) {
	if s.depth >= maxDepth {
		return 0, false, tooDeep(i)
	}
	i++
	if s.at(i) <= ' ' {
		i = s.space(i)
	}
	if s.at(i) == closer {
		return i + 1, false, nil
	}
	return i, true, nil
}

// next moves from the end of an element or member to the following one. If there is none,
// more is false, and next is after the container.
func (s *scanner) next(i int, closer byte) (next int, more bool, err error) {
	if s.at(i) <= ' ' {
		i = s.space(i)
	}
	switch s.at(i) {
	case ',':
		i++
		if s.at(i) <= ' ' {
			i = s.space(i)
		}
		return i, true, nil
	case closer:
		return i + 1, false, nil
	}
	return 0, false, notClosed(i, closer == '}')
}

func tooDeep(i int) error {
	return &syntaxError{i, fmt.Sprintf("no more than %d nested containers", maxDepth)}
}

func notClosed(i int, object bool) error {
	if object {
		return &syntaxError{i, "a comma or }"}
	}
	return &syntaxError{i, "a comma or ]"}
}

// scalar moves past a string, number, true, false or null.
func (s *scanner) scalar(i int) (int, error) {
	switch c := s.at(i); {
	case c == '"':
		end, _, err := s.quoted(i)
		return end, err
	case c == 't':
		return s.literal(i, "true")
	case c == 'f':
		return s.literal(i, "false")
	case c == 'n':
		return s.literal(i, "null")
	case c == '-' || c >= '0' && c <= '9':
		return s.number(i)
	}
	return 0, &syntaxError{i, "a value"}
}

func (s *scanner) literal(i int, word string) (int, error) {
	end := i + len(word)
	if end <= len(s.raw) && string(s.raw[i:end]) == word {
		return end, nil
	}
	return 0, &syntaxError{i, word}
}

func (s *scanner) number(i int) (int, error) {
	if s.raw[i] == '-' {
		i++
	}
	end := s.digits(i)
	if end == i || s.raw[i] == '0' && end > i+1 {
		return 0, &syntaxError{i, "a number"}
	}
	if s.at(end) == '.' {
		i = end + 1
		end = s.digits(i)
		if end == i {
			return 0, &syntaxError{i, "a fraction"}
		}
	}
	if c := s.at(end); c == 'e' || c == 'E' {
		i = end + 1
		if c := s.at(i); c == '+' || c == '-' {
			i++
		}
		end = s.digits(i)
		if end == i {
			return 0, &syntaxError{i, "an exponent"}
		}
	}
	return end, nil
}

func (s *scanner) digits(i int) int {
	for i < len(s.raw) && s.raw[i]-'0' <= 9 {
		i++
	}
	return i
}
