package logging

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/textcheck"
)

// TestLinesAreVisible logs hostile texts, and checks that a line is one line and moves no cursor.
func TestLinesAreVisible(t *testing.T) {
	const hostile = "a\x1b[2J\u009b2J\x7f\u202ebc\u2028\u200b\nlevel=ERROR msg=forged\xff"
	for _, format := range []string{Text, JSON} {
		var b bytes.Buffer
		log, err := New(Config{Format: format, Fields: map[string]string{"field": hostile}}, &b, &b)
		if err != nil {
			t.Fatal(err)
		}
		log.Info(hostile, "key", hostile, "error", errors.New(hostile), hostile, "a key")
		line := strings.TrimSuffix(b.String(), "\n")
		if strings.ContainsFunc(line, textcheck.IsHidden) || !strings.Contains(line, "forged") {
			t.Errorf("%s: got %q", format, line)
		}
	}
}
