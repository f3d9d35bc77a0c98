// Package secrettest has the checks that the tests of all engines share. Only tests import it.
package secrettest

import (
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/secret"
)

// ExpectValues checks the values of references that begin with a prefix.
func ExpectValues(t testing.TB, l *secret.Load, prefix string, values map[string]string) {
	t.Helper()
	for rest, want := range values {
		if got, err := l.Resolve(prefix + rest); got != want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", prefix+rest, got, err, want)
		}
	}
}

// ExpectErrors checks the kinds and the texts of errors. Each begins with its reference.
func ExpectErrors(t testing.TB, l *secret.Load, prefix string, failures map[string]struct {
	Kind vedette.ErrorKind
	Text string
}) {
	t.Helper()
	for rest, want := range failures {
		_, err := l.Resolve(prefix + rest)
		if err == nil {
			t.Errorf("%s: got no error, want %v", prefix+rest, want)
			continue
		}
		if vedette.KindOf(err) != want.Kind || !strings.HasPrefix(err.Error(), prefix+rest) || !strings.Contains(err.Error(), want.Text) {
			t.Errorf("%s: got error %v, want %v", prefix+rest, err, want)
		}
	}
}
