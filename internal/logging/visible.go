package logging

import (
	"bytes"
	"io"

	"github.com/vedette-io/vedette/internal/textcheck"
)

// visibleJSON escapes characters that terminals obey, because lines quote clusters and people read them with
// kubectl. slog's text does that itself, and its JSON does so for the oldest of these characters only.
type visibleJSON struct{ next io.Writer }

func (w visibleJSON) Write(line []byte) (int, error) {
	if bytes.ContainsFunc(line, func(r rune) bool { return r >= 0x7f && textcheck.IsHidden(r) }) {
		line = []byte(textcheck.EscapeJSON(string(line)))
	}
	return w.next.Write(line)
}
