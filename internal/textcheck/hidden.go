package textcheck

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsHidden reports whether a character changes how a terminal shows others, or cannot be seen: control
// characters, marks that change the direction of text, separators of lines, and spaces without a width.
func IsHidden(r rune) bool {
	switch {
	case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
		return true
	}
	switch r {
	case '\u2028', '\u2029', '\u200b', '\u2060', '\ufeff':
		return true
	}
	return false
}

// EscapeJSON returns a JSON document whose strings have escapes in place of hidden characters. Encoders
// escape only those below U+0020. So it can be converted to YAML, which rejects control characters, U+FFFE and U+FFFF. White space between
// the values stays.
func EscapeJSON(document string) string {
	isEscaped := func(r rune) bool { return r >= 0x7f && IsHidden(r) || r == 0xfffe || r == 0xffff }
	if !strings.ContainsFunc(document, isEscaped) {
		return document
	}
	var b strings.Builder
	for i := 0; i < len(document); {
		r, size := utf8.DecodeRuneInString(document[i:])
		if isEscaped(r) {
			fmt.Fprintf(&b, `\u%04x`, r) // none is above U+FFFF
		} else {
			b.WriteString(document[i : i+size])
		}
		i += size
	}
	return b.String()
}
