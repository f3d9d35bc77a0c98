package probe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestResultsAreInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		after := func(d time.Duration, detail string, err error) func(context.Context) (string, error) {
			return func(context.Context) (string, error) { time.Sleep(d); return detail, err }
		}
		var out bytes.Buffer
		err := Run(t.Context(), []Probe{
			One("slow", after(10*time.Second, "v1", nil)),
			One("quick", after(0, "", nil)),
			One("broken", after(time.Second, "", errors.New("first\nsecond\x1b[2J"))),
			{Name: "many", Run: func(context.Context) []Result {
				return []Result{{Name: "many a"}, {Name: "many b", Err: errors.New("no")}}
			}},
		}, &out)
		want := "ok      slow: v1\nok      quick\nfailed  broken: first; second?[2J\nok      many a\nfailed  many b: no\n"
		if out.String() != want || err == nil || err.Error() != "2 of 5 checks failed" {
			t.Errorf("got %q, %v, want %q", out.String(), err, want)
		}
	})
}

// TestHungProbeEnds checks that a probe that never ends does not delay the others, nor the end.
func TestHungProbeEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var probes []Probe
		hung := make(chan struct{})
		for i := range 3 * maxConcurrent {
			probes = append(probes, One(fmt.Sprint("p", i), func(context.Context) (string, error) {
				if i == 0 {
					<-hung
				}
				return "", nil
			}))
		}
		var out bytes.Buffer
		started := time.Now()
		err := Run(t.Context(), probes, &out)
		if took := time.Since(started); took != timeout+time.Second || err == nil || err.Error() != fmt.Sprintf("1 of %d checks failed", 3*maxConcurrent) {
			t.Errorf("got %v after %v", err, took)
		}
		if !strings.HasPrefix(out.String(), "failed  p0: no answer within 30 seconds") {
			t.Errorf("got %q", out.String())
		}
		close(hung)
	})
}

// TestNoProbesCannotFail checks that there is nothing to fail.
func TestNoProbesCannotFail(t *testing.T) {
	if err := Run(t.Context(), nil, &bytes.Buffer{}); err != nil {
		t.Error(err)
	}
}
