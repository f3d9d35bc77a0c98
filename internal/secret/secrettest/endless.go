package secrettest

import (
	"io"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
)

// WriteEndless writes a JSON object whose first value is a text without an end, until the reader leaves.
// It returns how many bytes were read, or about to be.
func WriteEndless(w io.Writer, start string) (sent int) {
	_, err := io.WriteString(w, start)
	for chunk := strings.Repeat("x", 1<<20); err == nil && sent < 1<<30; sent += len(chunk) {
		_, err = io.WriteString(w, chunk)
	}
	return sent
}

// ExpectTooLarge checks that a reader of WriteEndless left soon, and says why without the text.
func ExpectTooLarge(t testing.TB, sent int, err error) {
	t.Helper()
	if vedette.KindOf(err) != vedette.Invalid || !strings.Contains(err.Error(), "more than 4 MiB") || strings.Contains(err.Error(), "xxx") {
		t.Errorf("got error %.300v, want that the answer is too large", err)
	}
	if sent > 64<<20 {
		t.Errorf("%d bytes were read", sent)
	}
}
