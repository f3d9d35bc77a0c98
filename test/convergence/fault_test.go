package convergence

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/vedette-io/vedette/test/proxy"
)

// fault is one sort of thing that goes wrong with one part of a world. It is
// begun, lasts, and is ended; nil in place of end means that it lasts no time.
type fault struct {
	name        string
	begin, end  func(ctx context.Context) error
	maxDuration time.Duration // how long it may last
	weight      int
}

// part is something that can fail in one way at a time.
type part struct {
	name   string
	faults []fault
}

// parts are all that can fail in a world.
func (w *world) parts() []part {
	parts := []part{{"server", processFaults(w.server)}}
	for _, a := range w.agents {
		parts = append(parts, part{a.id, processFaults(a.process)}, part{a.id + "'s link", proxyFaults(a.link)})
		for _, c := range w.clusters {
			if p := a.api[c]; p != nil {
				parts = append(parts, part{a.id + "'s way to " + c.name, proxyFaults(p)})
			}
		}
	}
	for _, c := range w.clusters {
		parts = append(parts, part{c.name, clusterFaults(c)})
	}
	return append(parts, w.db.parts()...)
}

func (db *database) parts() []part {
	if db.proxy == nil {
		parts := []part{{"database", []fault{{"is locked", db.lock, db.unlock, longestFreeze, 1}}}}
		if db.disk.mounted {
			parts = append(parts, part{"disk", []fault{{"is full", infallible(db.disk.fill), infallible(db.disk.free), 5 * time.Second, 1}}})
		}
		return parts
	}
	return []part{
		{"database", []fault{
			{"is killed", infallible(db.kill), infallible(db.start), 4 * time.Second, 2},
			{"is frozen", infallible(db.pause), infallible(db.resume), longestFreeze, 1},
		}},
		{"way to the database", proxyFaults(db.proxy)},
		{"answers of the database", db.errorFaults()},
	}
}

// errorFaults are errors that the database answers some statements with.
func (db *database) errorFaults() []fault {
	var faults []fault
	for i, code := range db.errors {
		answer := infallible(func() { db.errorInjector.FailEvery(code, 1+i%4) })
		faults = append(faults, fault{"are error " + code, answer, infallible(db.errorInjector.Reset), 8 * time.Second, 1})
	}
	return faults
}

// longestFreeze is how long something may be frozen: longer than any deadline within our
// programs, but for those of operations that take minutes.
const longestFreeze = 25 * time.Second

// infallible makes a step of what can't fail, or fails the test by itself.
func infallible(what func()) func(context.Context) error {
	return func(context.Context) error { what(); return nil }
}

func processFaults(p *process) []fault {
	return []fault{
		{"is killed", infallible(p.kill), infallible(p.start), 3 * time.Second, 3},
		{"is restarted", infallible(p.stop), infallible(p.start), time.Second, 1},
		{"is paused", infallible(p.pause), infallible(p.resume), 8 * time.Second, 2},
		{"is paused for long", infallible(p.pause), infallible(p.resume), longestFreeze, 1},
	}
}

// proxyFaults heal in two ways after a freeze: what was held back goes on, or
// the connections turn out to be lost.
func proxyFaults(p *proxy.Proxy) []fault {
	freeze := func(directions ...proxy.Direction) func(context.Context) error {
		return infallible(func() { p.Freeze(directions...) })
	}
	cutAndHeal := infallible(func() { p.Cut(); p.Heal() })
	return []fault{
		{"is cut", infallible(p.Cut), nil, 0, 2},
		{"loses what is open", infallible(p.Blackhole), nil, 0, 2},
		{"is refused", infallible(p.Refuse), infallible(p.Heal), 5 * time.Second, 2},
		{"is slow", infallible(func() { p.Slow(150 * time.Millisecond) }), infallible(p.Heal), 6 * time.Second, 1},
		{"is far away", infallible(func() { p.AddLatency(120 * time.Millisecond) }), infallible(p.Heal), 8 * time.Second, 1},
		{"is narrow", infallible(func() { p.Limit(64 << 10) }), infallible(p.Heal), 8 * time.Second, 1},
		{"stops half-way, and goes on", infallible(func() { p.StallAfter(proxy.Down, 3000) }), infallible(p.Heal), 8 * time.Second, 1},
		{"stops half-way, and is lost", infallible(func() { p.StallAfter(proxy.Down, 3000) }), cutAndHeal, 8 * time.Second, 1},
		{"is frozen, and goes on", freeze(proxy.Up, proxy.Down), infallible(p.Heal), 8 * time.Second, 1},
		{"is frozen, and lost", freeze(proxy.Up, proxy.Down), cutAndHeal, 8 * time.Second, 1},
		{"is frozen upwards", freeze(proxy.Up), cutAndHeal, 6 * time.Second, 1},
		{"is frozen downwards", freeze(proxy.Down), cutAndHeal, 6 * time.Second, 1},
	}
}

func clusterFaults(c *cluster) []fault {
	pause := func(context.Context) error { return c.PauseAPIServer() }
	resume := func(context.Context) error { return c.ResumeAPIServer() }
	pauseEtcd := func(context.Context) error { return c.PauseEtcd() }
	resumeEtcd := func(context.Context) error { return c.ResumeEtcd() }
	return []fault{
		{"loses its API server", infallible(c.KillAPIServer), c.StartAPIServer, 3 * time.Second, 2},
		{"restarts its API server", c.StopAPIServer, c.StartAPIServer, time.Second, 1},
		{"pauses its API server", pause, resume, 8 * time.Second, 1},
		{"pauses its API server for long", pause, resume, longestFreeze, 1},
		{"pauses etcd", pauseEtcd, resumeEtcd, longestFreeze, 1},
		{"forgets all marks", c.Expire, nil, 0, 2},
		{"is compacted", c.Compact, nil, 0, 1},
		{"loses etcd", infallible(c.KillEtcd), c.StartEtcd, 2 * time.Second, 1},
	}
}

// incident is a fault at its time.
type incident struct {
	part     string
	fault    fault
	at       time.Duration // since the schedule began
	duration time.Duration
}

func (i incident) String() string {
	if i.fault.end == nil {
		return fmt.Sprintf("%6.2fs  %s %s", i.at.Seconds(), i.part, i.fault.name)
	}
	return fmt.Sprintf("%6.2fs  %s %s, for %.2fs", i.at.Seconds(), i.part, i.fault.name, i.duration.Seconds())
}

// schedule draws incidents: of different parts they may overlap, of one part
// they follow each other. Parts are in the order in which incidents of theirs
// begin.
func schedule(rng *rand.Rand, parts []part, n int, length time.Duration) []incident {
	freeAt := map[string]time.Duration{} // when the part's last incident has ended
	incidents := make([]incident, 0, n)
	for at := time.Duration(0); len(incidents) < n; at += time.Duration(rng.Int64N(int64(2 * length / time.Duration(n)))) {
		p := parts[rng.IntN(len(parts))]
		f := p.draw(rng)
		duration := time.Duration(0)
		if f.end != nil {
			duration = f.maxDuration/10 + time.Duration(rng.Int64N(int64(f.maxDuration*9/10)))
		}
		if freeAt[p.name] > at {
			continue
		}
		freeAt[p.name] = at + duration + 500*time.Millisecond
		incidents = append(incidents, incident{p.name, f, at, duration})
	}
	return incidents
}

func (p part) draw(rng *rand.Rand) fault {
	total := 0
	for _, f := range p.faults {
		total += f.weight
	}
	n := rng.IntN(total)
	for _, f := range p.faults {
		if n -= f.weight; n < 0 {
			return f
		}
	}
	panic("weights do not add up")
}
