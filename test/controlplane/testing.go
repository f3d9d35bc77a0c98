//go:build unix

package controlplane

import (
	"os"
	"testing"
)

// New starts a plane for a test and stops it when the test ends. The test fails if the plane does
// not start, or if a process exits unexpectedly. The default of Options.Log is standard error,
// because a first build takes minutes in which a test must not look stuck.
func New(t testing.TB, options Options) *Plane {
	t.Helper()
	if options.Log == nil {
		if _, err := Build(t.Context(), os.Stderr); err != nil {
			t.Fatal(err)
		}
		options.Log = t.Output()
	}
	p, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Err(); err != nil {
			t.Error(err)
		}
		if err := p.Stop(); err != nil {
			t.Errorf("stop the control plane: %v", err)
		}
	})
	return p
}
