package textcheck

import (
	"io"
	"strings"
)

// Sanitize replaces hidden characters by "?". Anybody who may write to a cluster could otherwise move
// the cursor of the reader's terminal, or change the order of what it shows.
func Sanitize(text string) string { return sanitizeExcept(text, "") }

func sanitizeExcept(text, kept string) string {
	return strings.Map(func(r rune) rune {
		if IsHidden(r) && !strings.ContainsRune(kept, r) {
			return '?'
		}
		return r
	}, text)
}

// SafeWriter sanitizes what is written, besides line feeds and tabs. Programs write to one what quotes
// servers and clusters. Each write must be whole characters.
type SafeWriter struct{ To io.Writer }

// Write writes a text without hidden characters.
func (w SafeWriter) Write(text []byte) (int, error) {
	if _, err := io.WriteString(w.To, sanitizeExcept(string(text), "\n\t")); err != nil {
		return 0, err
	}
	return len(text), nil
}
