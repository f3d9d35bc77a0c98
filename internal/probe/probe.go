// Package probe tries what a program depends on, such as a database or an API server, without
// starting the program, and prints a line for each.
package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// Result is what one attempt showed.
type Result struct {
	Name   string // what was tried, for example "account prod-eu"
	Detail string // what was found, if Err is nil
	Err    error  // why it failed, and what to do
}

// Probe tries one thing. It may return several results.
type Probe struct {
	Name string
	// Run should end soon after ctx. If it does not, it is left behind.
	Run func(ctx context.Context) []Result
}

// One returns a probe with one result.
func One(name string, run func(ctx context.Context) (detail string, err error)) Probe {
	return Probe{Name: name, Run: func(ctx context.Context) []Result {
		detail, err := run(ctx)
		return []Result{{name, detail, err}}
	}}
}

const (
	// timeout limits a probe. What takes longer fails in production too.
	timeout = 30 * time.Second
	// maxConcurrent is how many probes run at a time, because a configuration may have hundreds of
	// accounts.
	maxConcurrent = 16
)

// Run runs all probes, and prints their results in order, each as soon as those before it are known.
// The error says how many have failed.
func Run(ctx context.Context, probes []Probe, out io.Writer) error {
	results := make([]chan []Result, len(probes))
	for i := range results {
		results[i] = make(chan []Result, 1)
	}
	var group errgroup.Group
	group.SetLimit(maxConcurrent)
	go func() { // ends with the last probe
		for i, p := range probes {
			group.Go(func() error { results[i] <- p.run(ctx); return nil })
		}
	}()
	failed, total := 0, 0
	for _, ended := range results {
		for _, r := range <-ended {
			total++
			if r.Err != nil {
				failed++
			}
			if _, err := fmt.Fprintln(out, r); err != nil {
				return fmt.Errorf("print the results: %w", err)
			}
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, total)
	}
	return nil
}

var errTimeout = errors.New("no answer within 30 seconds: check firewalls, proxies and network policies on the way")

// run returns when the probe has ended or its time is up, because a program that the probe starts
// may ignore its context.
func (p Probe) run(ctx context.Context) []Result {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()
	ended := make(chan []Result, 1)
	go func() { ended <- p.Run(ctx) }() // if it does not end, it ends with the process
	select {
	case found := <-ended:
		return found
	case <-ctx.Done():
	}
	// A probe that respects its context says more about what it waited for.
	select {
	case found := <-ended:
		return found
	case <-time.After(time.Second):
		return []Result{{Name: p.Name, Err: context.Cause(ctx)}}
	}
}

// String returns the line of a result: "ok", or "failed" with what to do.
func (r Result) String() string {
	if r.Err != nil {
		return "failed  " + oneLine(r.Name) + ": " + oneLine(r.Err.Error())
	}
	if r.Detail == "" {
		return "ok      " + oneLine(r.Name)
	}
	return "ok      " + oneLine(r.Name) + ": " + oneLine(r.Detail)
}

// oneLine replaces line breaks and other control characters, because texts come from servers.
func oneLine(text string) string {
	text = strings.ReplaceAll(strings.TrimSpace(text), "\n", "; ")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, text)
}
