package vedette

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// ellipsis ends a text that was cut.
const ellipsis = "…"

// CleanText makes a text from a cluster, a proxy or a peer safe to send, store and
// show: valid UTF-8, without control characters other than line feed and tab, and at
// most limit bytes long. Invalid bytes become U+FFFD, control characters become spaces,
// and a text that is cut ends in "…". A clean text is returned unchanged.
func CleanText(s string, limit int) string {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, isControl) {
		s = strings.Map(func(r rune) rune {
			if isControl(r) {
				return ' '
			}
			return r // strings.Map passes U+FFFD for an invalid byte
		}, s[:min(len(s), limit+1)])
	}
	if len(s) <= limit {
		return s
	}
	end := max(0, limit-len(ellipsis))
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + ellipsis
}

func isControl(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
