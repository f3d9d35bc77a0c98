package jsonstream

import (
	"fmt"
	"io"
)

// ensureByte makes the byte at pos readable.
func (s *Splitter) ensureByte() error {
	if s.pos < s.end {
		return nil
	}
	return s.fill()
}

// requireByte is ensureByte for places where the stream must not end.
func (s *Splitter) requireByte() error {
	if err := s.ensureByte(); err == io.EOF {
		return io.ErrUnexpectedEOF
	} else {
		return err
	}
}

// peek returns the next byte that is not white space. The error is io.EOF if the
// stream ends instead.
func (s *Splitter) peek() (byte, error) {
	for {
		if err := s.ensureByte(); err != nil {
			return 0, err
		}
		switch c := s.buf[s.pos]; c {
		case ' ', '\t', '\r', '\n':
			if s.start == s.pos {
				s.start++ // nothing is kept: the newline after an event must not hold a buffer
			}
			s.pos++
		default:
			return c, nil
		}
	}
}

// token moves past the next byte that is not white space and returns it.
func (s *Splitter) token() (byte, error) {
	c, err := s.peek()
	if err == io.EOF {
		return 0, io.ErrUnexpectedEOF
	}
	if err == nil {
		s.pos++
	}
	return c, err
}

// expect moves past one given byte.
func (s *Splitter) expect(want byte) error {
	c, err := s.token()
	if err == nil && c != want {
		return s.malformed(c, fmt.Sprintf("%q", want))
	}
	return err
}

// malformed reports what was found instead of what. It names an HTML page as such,
// because proxies and login portals answer with one.
func (s *Splitter) malformed(c byte, want string) error {
	if c == '<' {
		return fmt.Errorf("%w: an HTML page instead of JSON, as proxies and sign-in pages send it", ErrMalformed)
	}
	return fmt.Errorf("%w: found %s, want %s", ErrMalformed, s.excerpt(s.buf[s.pos-1:s.end]), want)
}

// excerpt quotes the beginning of b for messages. It quotes nothing if buffers are
// wiped, because messages outlive the buffers.
func (s *Splitter) excerpt(b []byte) string {
	if s.wipe {
		return "something else"
	}
	return fmt.Sprintf("%q", b[:min(len(b), 20)])
}

// skip moves past the next value.
func (s *Splitter) skip() error {
	c, err := s.token()
	if err != nil {
		return err
	}
	switch c {
	case '"':
		return s.skipString()
	case '{', '[':
		return s.skipNested(c)
	}
	return s.skipScalar(c)
}

// skipNested moves past the bracket that closes the one before pos.
func (s *Splitter) skipNested(opening byte) error {
	for depth := 1; ; {
		if err := s.requireByte(); err != nil {
			return err
		}
		b := s.buf[s.pos:s.end]
		i := 0
		for i < len(b) && !isStructural[b[i]] {
			i++
		}
		s.pos += i
		if i == len(b) {
			continue
		}
		s.pos++
		switch b[i] {
		case '"':
			if err := s.skipString(); err != nil {
				return err
			}
		case '{', '[':
			depth++
		default:
			depth--
			if depth == 0 {
				return s.checkBracket(opening, b[i])
			}
		}
	}
}

// isStructural holds the bytes at which the search for the end of a value stops.
var isStructural = [256]bool{'"': true, '{': true, '}': true, '[': true, ']': true}

// checkBracket checks that the last bracket of a value matches its first. Brackets
// inside are only counted: the reader of the value validates them.
func (s *Splitter) checkBracket(opening, end byte) error {
	if end-opening != 2 { // in ASCII, "[" and "]" are two apart, and so are "{" and "}"
		return s.malformed(end, fmt.Sprintf("the end of %q", opening))
	}
	return nil
}

// skipString moves past the quote that ends the string around pos.
func (s *Splitter) skipString() error {
	for {
		if err := s.requireByte(); err != nil {
			return err
		}
		b := s.buf[s.pos:s.end]
		i := 0
		for i < len(b) && b[i] != '"' && b[i] != '\\' {
			i++
		}
		s.pos += i
		if i == len(b) {
			continue
		}
		s.pos++
		if b[i] == '"' {
			return nil
		}
		if err := s.requireByte(); err != nil {
			return err
		}
		s.pos++ // the escaped byte
	}
}

// skipScalar moves past a number or a literal whose first byte is c.
func (s *Splitter) skipScalar(c byte) error {
	if !isScalar(c) {
		return s.malformed(c, "a value")
	}
	for {
		if err := s.ensureByte(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if !isScalar(s.buf[s.pos]) {
			return nil
		}
		s.pos++
	}
}

func isScalar(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c == '-' || c == '+' || c == '.' || c == 'E'
}
