package fanout

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette/internal/cli/output"
)

// TestForEachAccount checks that lines are printed in the order of the accounts, although the
// accounts end in another order, and that the error counts failures.
func TestForEachAccount(t *testing.T) {
	for _, tt := range []struct {
		name        string
		interleaved bool
		want        string
	}{
		{"account by account", false, "a: first\na: last\nb: first\nb: last\n"},
		{"as they come", true, "b: first\na: first\nb: last\na: last\n"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out, errOut bytes.Buffer
			fan := &FanOut{Accounts: []string{"a", "b"}, Interleaved: tt.interleaved, out: &out, errOut: &errOut, spin: output.NewSpinner(&errOut),
				LoadErrors: []error{errors.New("x.yaml is invalid")}}
			delays := map[string]time.Duration{"a": 2 * time.Second, "b": time.Second}
			err := fan.ForEachAccount(t.Context(), func(_ context.Context, run *Run) error {
				time.Sleep(delays[run.Account])
				run.Printf("first")
				run.CountSuccess()
				time.Sleep(2 * time.Second)
				run.Printf("last")
				if run.Account == "a" {
					run.Failf("no %s", "way")
				}
				return nil
			})
			if out.String() != tt.want {
				t.Errorf("%s: got %q, want %q", tt.name, out.String(), tt.want)
			}
			if want := (FailedError{Failed: 2, Total: 4}); !errors.Is(err, want) {
				t.Errorf("%s: got error %v, want %v", tt.name, err, want)
			}
			if want := "Error: x.yaml is invalid\nError: a: no way\n"; errOut.String() != want {
				t.Errorf("%s: got error output %q, want %q", tt.name, errOut.String(), want)
			}
		})
	}
}

// TestErrorOfWorkEndsCommand checks that an error of one account cancels the others and is
// returned as it is.
func TestErrorOfWorkEndsCommand(t *testing.T) {
	var out, errOut bytes.Buffer
	fan := &FanOut{Accounts: []string{"a", "b"}, out: &out, errOut: &errOut, spin: output.NewSpinner(&errOut)}
	down := errors.New("the server is down")
	err := fan.ForEachAccount(t.Context(), func(ctx context.Context, run *Run) error {
		if run.Account == "b" {
			return down
		}
		<-ctx.Done()
		return context.Cause(ctx)
	})
	if !errors.Is(err, down) {
		t.Errorf("got error %v, want %v", err, down)
	}
}
