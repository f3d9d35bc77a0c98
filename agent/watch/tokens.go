package watch

import (
	"fmt"
	"io"
)

// ensureByte makes the byte at pos readable.
func (s *splitter) ensureByte() error {
	if s.pos < s.end {
		return nil
	}
	return s.fill()
}

// requireByte is need where the stream may not end.
func (s *splitter) requireByte() error {
	if err := s.ensureByte(); err == io.EOF {
		return io.ErrUnexpectedEOF
	} else {
		return err
	}
}

// peek returns the next byte that is no white space. The error is io.EOF where
// the stream ends instead.
func (s *splitter) peek() (byte, error) {
	for {
		if err := s.ensureByte(); err != nil {
			return 0, err
		}
		switch c := s.buf[s.pos]; c {
		case ' ', '\t', '\r', '\n':
			if s.start == s.pos {
				s.start++ // nothing is kept: the line's end behind an event must not hold a buffer
			}
			s.pos++
		default:
			return c, nil
		}
	}
}

// token moves past the next byte that is no white space and returns it.
func (s *splitter) token() (byte, error) {
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
func (s *splitter) expect(want byte) error {
	c, err := s.token()
	if err == nil && c != want {
		return s.malformed(c, fmt.Sprintf("%q", want))
	}
	return err
}

// malformed says what was found in place of what; an HTML page is named as such,
// since it is what proxies and login portals answer with.
func (s *splitter) malformed(c byte, want string) error {
	if c == '<' {
		return fmt.Errorf("%w: a page of HTML in place of JSON, as proxies and sign-in pages send it", errMalformed)
	}
	return fmt.Errorf("%w: %s where %s was due", errMalformed, s.excerpt(s.buf[s.pos-1:s.end]), want)
}

// excerpt quotes the beginning of what was found, for messages; nothing of what
// must leave no trace.
func (s *splitter) excerpt(b []byte) string {
	if s.wipe {
		return "something else"
	}
	return fmt.Sprintf("%q", b[:min(len(b), 20)])
}

// skip moves past the next value.
func (s *splitter) skip() error {
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

// skipNested moves behind the bracket that closes the one before pos.
func (s *splitter) skipNested(open byte) error {
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
			if depth--; depth == 0 {
				return s.checkBracket(open, b[i])
			}
		}
	}
}

// isStructural are the bytes that the search for the end of a value stops at.
var isStructural = [256]bool{'"': true, '{': true, '}': true, '[': true, ']': true}

// checkBracket checks that the last bracket of a value matches its first. Brackets
// inside are counted only: whoever reads the value finds out.
func (s *splitter) checkBracket(open, end byte) error {
	if end-open != 2 { // in ASCII "[" and "]", "{" and "}" are two apart
		return s.malformed(end, fmt.Sprintf("the end of %q", open))
	}
	return nil
}

// skipString moves behind the quote that ends the string around pos.
func (s *splitter) skipString() error {
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
		s.pos++ // whatever is escaped
	}
}

// skipScalar moves behind a number or a literal whose first byte is c.
func (s *splitter) skipScalar(c byte) error {
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
