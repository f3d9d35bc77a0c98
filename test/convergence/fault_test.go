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
	name       string
	begin, end func(ctx context.Context) error
	most       time.Duration // how long it may last
	weight     int
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
		parts := []part{{"database", []fault{{"is locked", db.lock, db.unlock, longest, 1}}}}
		if db.disk.mounted {
			parts = append(parts, part{"disk", []fault{{"is full", did(db.disk.fill), did(db.disk.free), 5 * time.Second, 1}}})
		}
		return parts
	}
	return []part{
		{"database", []fault{
			{"is killed", did(db.kill), did(db.start), 4 * time.Second, 2},
			{"is frozen", did(db.pause), did(db.resume), longest, 1},
		}},
		{"way to the database", proxyFaults(db.proxy)},
		{"answers of the database", db.refusals()},
	}
}

// refusals are errors that the database answers some statements with.
func (db *database) refusals() []fault {
	var faults []fault
	for i, code := range db.errors {
		answer := did(func() { db.refuser.Answer(code, 1+i%4) })
		faults = append(faults, fault{"are error " + code, answer, did(db.refuser.Heal), 8 * time.Second, 1})
	}
	return faults
}

// longest is how long something may be frozen: longer than any deadline within our
// programs, but for those of operations that take minutes.
const longest = 25 * time.Second

// did makes a step of what can't fail, or fails the test by itself.
func did(what func()) func(context.Context) error {
	return func(context.Context) error { what(); return nil }
}

func processFaults(p *process) []fault {
	return []fault{
		{"is killed", did(p.kill), did(p.start), 3 * time.Second, 3},
		{"is restarted", did(p.stop), did(p.start), time.Second, 1},
		{"is paused", did(p.pause), did(p.resume), 8 * time.Second, 2},
		{"is paused for long", did(p.pause), did(p.resume), longest, 1},
	}
}

// proxyFaults heal in two ways after a freeze: what was held back goes on, or
// the connections turn out to be lost.
func proxyFaults(p *proxy.Proxy) []fault {
	freeze := func(directions ...proxy.Direction) func(context.Context) error {
		return did(func() { p.Freeze(directions...) })
	}
	lost := did(func() { p.Cut(); p.Heal() })
	return []fault{
		{"is cut", did(p.Cut), nil, 0, 2},
		{"loses what is open", did(p.Strand), nil, 0, 2},
		{"is refused", did(p.Refuse), did(p.Heal), 5 * time.Second, 2},
		{"is slow", did(func() { p.Slow(150 * time.Millisecond) }), did(p.Heal), 6 * time.Second, 1},
		{"is far away", did(func() { p.Delay(120 * time.Millisecond) }), did(p.Heal), 8 * time.Second, 1},
		{"is narrow", did(func() { p.Limit(64 << 10) }), did(p.Heal), 8 * time.Second, 1},
		{"stops half-way, and goes on", did(func() { p.StallAfter(proxy.Down, 3000) }), did(p.Heal), 8 * time.Second, 1},
		{"stops half-way, and is lost", did(func() { p.StallAfter(proxy.Down, 3000) }), lost, 8 * time.Second, 1},
		{"is frozen, and goes on", freeze(proxy.Up, proxy.Down), did(p.Heal), 8 * time.Second, 1},
		{"is frozen, and lost", freeze(proxy.Up, proxy.Down), lost, 8 * time.Second, 1},
		{"is frozen upwards", freeze(proxy.Up), lost, 6 * time.Second, 1},
		{"is frozen downwards", freeze(proxy.Down), lost, 6 * time.Second, 1},
	}
}

func clusterFaults(c *cluster) []fault {
	pause := func(context.Context) error { return c.PauseAPIServer() }
	resume := func(context.Context) error { return c.ResumeAPIServer() }
	pauseEtcd := func(context.Context) error { return c.PauseEtcd() }
	resumeEtcd := func(context.Context) error { return c.ResumeEtcd() }
	return []fault{
		{"loses its API server", did(c.KillAPIServer), c.StartAPIServer, 3 * time.Second, 2},
		{"restarts its API server", c.StopAPIServer, c.StartAPIServer, time.Second, 1},
		{"pauses its API server", pause, resume, 8 * time.Second, 1},
		{"pauses its API server for long", pause, resume, longest, 1},
		{"pauses etcd", pauseEtcd, resumeEtcd, longest, 1},
		{"forgets all marks", c.Expire, nil, 0, 2},
		{"is compacted", c.Compact, nil, 0, 1},
		{"loses etcd", did(c.KillEtcd), c.StartEtcd, 2 * time.Second, 1},
	}
}

// incident is a fault at its time.
type incident struct {
	part  string
	fault fault
	at    time.Duration // since the schedule began
	lasts time.Duration
}

func (i incident) String() string {
	if i.fault.end == nil {
		return fmt.Sprintf("%6.2fs  %s %s", i.at.Seconds(), i.part, i.fault.name)
	}
	return fmt.Sprintf("%6.2fs  %s %s, for %.2fs", i.at.Seconds(), i.part, i.fault.name, i.lasts.Seconds())
}

// schedule draws incidents: of different parts they may overlap, of one part
// they follow each other. Parts are in the order in which incidents of theirs
// begin.
func schedule(rng *rand.Rand, parts []part, n int, length time.Duration) []incident {
	free := map[string]time.Duration{} // when the part's last incident has ended
	incidents := make([]incident, 0, n)
	for at := time.Duration(0); len(incidents) < n; at += time.Duration(rng.Int64N(int64(2 * length / time.Duration(n)))) {
		p := parts[rng.IntN(len(parts))]
		f := p.draw(rng)
		lasts := time.Duration(0)
		if f.end != nil {
			lasts = f.most/10 + time.Duration(rng.Int64N(int64(f.most*9/10)))
		}
		if free[p.name] > at {
			continue
		}
		free[p.name] = at + lasts + 500*time.Millisecond
		incidents = append(incidents, incident{p.name, f, at, lasts})
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
