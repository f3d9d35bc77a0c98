package textcheck

import "strings"

// Truncate shortens a text to a number of bytes, between two characters, and marks that by an ellipsis.
func Truncate(text string, maxBytes int) string {
	if len(text) <= maxBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxBytes], "") + "…"
}
