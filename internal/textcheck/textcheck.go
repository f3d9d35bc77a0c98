// Package textcheck finds what a text from outside must not hold if it is to
// become a name, a selector or a user: bytes that are not UTF-8, which gRPC
// can't carry and databases refuse, and control characters, which no name in
// Kubernetes or Spinnaker has.
package textcheck

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// Error says what is wrong with a text, and where. It does not repeat the text.
type Error struct {
	Problem string // "byte 0xff is not UTF-8"
	Offset  int    // in bytes
}

// Error continues a sentence about the text: "must not hold …".
func (e *Error) Error() string { return fmt.Sprintf("%s at byte %d", e.Problem, e.Offset) }

// UTF8 returns an *Error where a text is not UTF-8 throughout.
func UTF8[T ~string | ~[]byte](text T) error {
	if utf8.ValidString(string(text)) {
		return nil
	}
	return firstInvalid(string(text))
}

// Name is UTF8 for texts that must not hold control characters either.
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
