package redact

import (
	"unicode/utf16"
	"unicode/utf8"
)

// unescape appends the content of a JSON string to dst with resolved escapes. It keeps
// invalid escape sequences, so that it can be applied to text that may not be JSON. A lone
// surrogate becomes U+FFFD, as in encoding/json.
func unescape(dst, s []byte) []byte {
	for i := 0; i < len(s); {
		if s[i] != '\\' {
			dst = append(dst, s[i])
			i++
			continue
		}
		n := escapeLen(s[i:])
		switch {
		case n == 0:
			dst = append(dst, s[i])
			n = 1
		case n == 2:
			dst = append(dst, unescapedByte(s[i+1]))
		default:
			var r rune
			r, n = escapedRune(s[i:])
			dst = utf8.AppendRune(dst, r)
		}
		i += n
	}
	return dst
}

func unescapedByte(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

// escapedRune decodes \uXXXX, or a surrogate pair of them, at the start of s. It returns the
// rune and the number of bytes.
func escapedRune(s []byte) (rune, int) {
	r, _ := hex4(s[2:])
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if len(s) >= 12 && s[6] == '\\' && s[7] == 'u' {
		if low, ok := hex4(s[8:]); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return pair, 12
			}
		}
	}
	return utf8.RuneError, 6
}

func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

const hexDigits = "0123456789abcdef"

func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}
