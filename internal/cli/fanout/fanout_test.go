package fanout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
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

// TestNoticesAreLimited checks that a command on many accounts prints few notices, and each warning of API servers once.
func TestNoticesAreLimited(t *testing.T) {
	for _, interleaved := range []bool{false, true} {
		var out, errOut bytes.Buffer
		fan := &FanOut{Interleaved: interleaved, out: &out, errOut: &errOut, spin: output.NewSpinner(&errOut)}
		for n := range 490 {
			fan.Accounts = append(fan.Accounts, fmt.Sprintf("prod-%03d", n))
		}
		err := fan.ForEachAccount(t.Context(), func(_ context.Context, run *Run) error {
			run.Noticef("%s: none", run.Account)
			run.Noticef("%s: none", run.Account)
			run.printWarnings([]string{"it is deprecated", "it is deprecated"})
			if run.Account == "prod-489" {
				run.printWarnings([]string{"it is new"})
				run.Failf("no")
			}
			return nil
		})
		if want := (FailedError{Failed: 1, Total: 1}); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
		text := errOut.String()
		for part, want := range map[string]int{"\n": 15, ": none\n": 10, "and 480 more": 1, "Warning: it is deprecated\n": 1, "Warning: it is new\n": 1,
			"Error: prod-489: no\n": 1, "Warnings above came from 489 more accounts, too: prod-": 1} {
			if got := strings.Count(text, part); got != want {
				t.Errorf("interleaved %v: got %q %d times, want %d:\n%s", interleaved, part, got, want, text)
			}
		}
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
