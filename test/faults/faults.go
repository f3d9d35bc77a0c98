// Package faults draws what fails when in tests with real processes, from a seed, and makes processes and links fail.
package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/vedette-io/vedette/test/proxy"
)

// Fault is a fault of one part of a world. It begins, lasts, and ends. If End is nil, it lasts no time.
type Fault struct {
	Name        string
	Begin, End  func(ctx context.Context) error
	MaxDuration time.Duration // how long it may last
	Weight      int           // how often it is drawn, compared with other faults of the part
}

// Part is a component that can have one fault at a time.
type Part struct {
	Name   string
	Faults []Fault
}

// New returns a fault; its arguments are the fields of Fault.
func New(name string, begin, end func(ctx context.Context) error, maxDuration time.Duration, weight int) Fault {
	return Fault{name, begin, end, maxDuration, weight}
}

// NewPart returns a part.
func NewPart(name string, all ...Fault) Part { return Part{name, all} }

// LongestFreeze is the longest time for which a part is frozen: longer than any deadline in our programs, except those of operations that
// take minutes.
const LongestFreeze = 25 * time.Second

// Infallible converts a function without an error to one with an error.
func Infallible(what func()) func(context.Context) error {
	return func(context.Context) error { what(); return nil }
}

// Process is a program that a fault ends and starts.
type Process interface {
	Start()
	Stop()
	Kill()
	Pause()
	Resume()
}

// OfProcess returns the faults of a program.
func OfProcess(p Process) []Fault {
	return []Fault{
		{"is killed", Infallible(p.Kill), Infallible(p.Start), 3 * time.Second, 3},
		{"is restarted", Infallible(p.Stop), Infallible(p.Start), time.Second, 1},
		{"is paused", Infallible(p.Pause), Infallible(p.Resume), 8 * time.Second, 2},
		{"is paused for long", Infallible(p.Pause), Infallible(p.Resume), LongestFreeze, 1},
	}
}

// OfLink returns the faults of a link. After a freeze, either the data that was held back continues, or the connections are lost.
func OfLink(p *proxy.Proxy) []Fault {
	freeze := func(directions ...proxy.Direction) func(context.Context) error {
		return Infallible(func() { p.Freeze(directions...) })
	}
	cutAndHeal := Infallible(func() { p.Cut(); p.Heal() })
	return []Fault{
		{"is cut", Infallible(p.Cut), nil, 0, 2},
		{"loses its open connections", Infallible(p.Blackhole), nil, 0, 2},
		{"refuses connections", Infallible(p.Refuse), Infallible(p.Heal), 5 * time.Second, 2},
		{"is slow", Infallible(func() { p.Slow(150 * time.Millisecond) }), Infallible(p.Heal), 6 * time.Second, 1},
		{"has high latency", Infallible(func() { p.AddLatency(120 * time.Millisecond) }), Infallible(p.Heal), 8 * time.Second, 1},
		{"has low bandwidth", Infallible(func() { p.Limit(64 << 10) }), Infallible(p.Heal), 8 * time.Second, 1},
		{"stalls mid-message, then continues", Infallible(func() { p.StallAfter(proxy.Down, 3000) }), Infallible(p.Heal), 8 * time.Second, 1},
		{"stalls mid-message, then is cut", Infallible(func() { p.StallAfter(proxy.Down, 3000) }), cutAndHeal, 8 * time.Second, 1},
		{"is frozen, then continues", freeze(proxy.Up, proxy.Down), Infallible(p.Heal), 8 * time.Second, 1},
		{"is frozen, then is cut", freeze(proxy.Up, proxy.Down), cutAndHeal, 8 * time.Second, 1},
		{"is frozen upwards", freeze(proxy.Up), cutAndHeal, 6 * time.Second, 1},
		{"is frozen downwards", freeze(proxy.Down), cutAndHeal, 6 * time.Second, 1},
	}
}

// Incident is a fault at a time.
type Incident struct {
	Part     string
	Fault    Fault
	At       time.Duration // since the start of the schedule
	Duration time.Duration
}

func (i Incident) String() string {
	if i.Fault.End == nil {
		return fmt.Sprintf("%6.2fs  %s %s", i.At.Seconds(), i.Part, i.Fault.Name)
	}
	return fmt.Sprintf("%6.2fs  %s %s, for %.2fs", i.At.Seconds(), i.Part, i.Fault.Name, i.Duration.Seconds())
}

// Run begins the fault, waits, and ends it.
func (i Incident) Run(ctx context.Context) error {
	err := i.Fault.Begin(ctx)
	if err == nil && i.Fault.End != nil {
		sleep(ctx, i.Duration)
		err = i.Fault.End(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", i.Part, i.Fault.Name, err)
	}
	return nil
}

// Schedule draws n incidents. Incidents of different parts may overlap, those of one part do not. They are in the order of their start.
func Schedule(rng *rand.Rand, parts []Part, n int, length time.Duration) []Incident {
	freeAt := map[string]time.Duration{} // end of the part's last incident
	incidents := make([]Incident, 0, n)
	for at := time.Duration(0); len(incidents) < n; at += time.Duration(rng.Int64N(int64(2 * length / time.Duration(n)))) {
		p := parts[rng.IntN(len(parts))]
		f := p.draw(rng)
		duration := time.Duration(0)
		if f.End != nil {
			duration = f.MaxDuration/10 + time.Duration(rng.Int64N(int64(f.MaxDuration*9/10)))
		}
		if freeAt[p.Name] > at {
			continue
		}
		freeAt[p.Name] = at + duration + 500*time.Millisecond
		incidents = append(incidents, Incident{p.Name, f, at, duration})
	}
	return incidents
}

func (p Part) draw(rng *rand.Rand) Fault {
	total := 0
	for _, f := range p.Faults {
		total += f.Weight
	}
	n := rng.IntN(total)
	for _, f := range p.Faults {
		n -= f.Weight
		if n < 0 {
			return f
		}
	}
	panic("weights do not add up")
}

// RunAll runs incidents at their times, and returns when all have ended. Each error is passed to report, which must be safe for
// concurrent use.
func RunAll(ctx context.Context, plan []Incident, report func(error)) {
	began := time.Now()
	last := map[string]chan struct{}{} // by part: closed when its last incident has ended
	for _, i := range plan {
		before, done := last[i.Part], make(chan struct{})
		last[i.Part] = done
		go func() {
			defer close(done)
			sleep(ctx, i.At-time.Since(began))
			if before != nil {
				<-before // because ending a fault may take longer than planned
			}
			if err := i.Run(ctx); err != nil {
				report(err)
			}
		}()
	}
	for _, done := range last {
		<-done
	}
}

// sleep waits for a fixed time.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
