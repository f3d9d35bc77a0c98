// Package textcheck checks text from outside that is to become a name, a selector or a user. It
// rejects bytes that are not UTF-8, because gRPC cannot send them and databases reject them, and
// control characters, because names in Kubernetes and Spinnaker do not contain any.
package textcheck

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// Error describes the first invalid character of a text, without repeating the text.
type Error struct {
	Problem string // for example "the control character U+0000"
	Offset  int    // in bytes
}

// Error returns the end of a sentence: "the name must not contain …".
func (e *Error) Error() string { return fmt.Sprintf("%s at byte %d", e.Problem, e.Offset) }

// UTF8 returns an *Error if text is not valid UTF-8.
func UTF8[T ~string | ~[]byte](text T) error {
	if utf8.ValidString(string(text)) {
		return nil
	}
	return firstInvalid(string(text))
}

// Name returns an *Error if text is not valid UTF-8 or contains control characters.
func Name(text string) error {
	for i, r := range text {
		if unicode.IsControl(r) {
			return &Error{fmt.Sprintf("the control character %U", r), i}
		}
	}
	return UTF8(text)
}

func firstInvalid(text string) error {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && size == 1 {
			return &Error{fmt.Sprintf("the byte %#02x, which is not UTF-8,", text[i]), i}
		}
		i += size
	}
	return nil
}
