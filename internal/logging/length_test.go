package logging

import (
	"errors"
	"strings"
	"testing"
)

// TestLinesAreBounded logs values of a megabyte of all types that clients can choose.
func TestLinesAreBounded(t *testing.T) {
	for _, format := range []string{Text, JSON} {
		var out strings.Builder
		log, err := New(Config{Format: format}, &out, nil)
		if err != nil {
			t.Fatal(err)
		}
		SetSecrets(log, []string{"s3cret-token"})
		long := strings.Repeat("\x00x", 1<<19)
		straddling := strings.Repeat("y", maxTextBytes-5) + "s3cret-token" + long
		log.Warn("a line", "text", long, "error", errors.New(long), "list", []string{long}, "secret", straddling, "short", "kept")
		line := out.String()
		if len(line) > 100<<10 || !strings.Contains(line, "(1048576 bytes)") || !strings.Contains(line, "kept") {
			t.Errorf("%s: got %d bytes, want a bounded line that tells the length and has the other values", format, len(line))
		}
		if strings.Contains(line, "s3cr") {
			t.Errorf("%s: a secret was cut, and not masked", format)
		}
	}
}
