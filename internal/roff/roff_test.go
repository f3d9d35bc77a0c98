package roff_test

import (
	"testing"

	"github.com/vedette-io/vedette/internal/roff"
)

func TestTextsHaveNoMeaning(t *testing.T) {
	for text, want := range map[string]string{
		".SH x\n'br\n": "\\&.SH x\n\\&'br\n", `a\n--b`: `a\en\-\-b` + "\n", "…": "\\[u2026]\n", "": "",
	} {
		if got := roff.Lines(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got, want := roff.Quote(`a "b"`), `"a \(dqb\(dq"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
