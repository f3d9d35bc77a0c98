package convergence

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/vedette-io/vedette/test/process"
	"github.com/vedette-io/vedette/test/proxy"
)

// fault is a fault of one part of a world. It begins, lasts, and ends. If end is nil, it lasts no
// time.
type fault struct {
	name        string
	begin, end  func(ctx context.Context) error
	maxDuration time.Duration // how long it may last
	weight      int
}

// part is a component that can have one fault at a time.
type part struct {
	name   string
	faults []fault
}

// parts returns all components that can fail.
func (w *world) parts() []part {
	parts := []part{{"server", processFaults(w.server)}}
	for _, a := range w.agents {
		parts = append(parts, part{a.id, append(processFaults(a.Program), a.slowStart())}, part{a.id + "'s link", proxyFaults(a.link)})
		for i, c := range w.clusters {
			p := a.api[c]
			if p == nil {
				continue
			}
			faults := proxyFaults(p)
			if other := w.clusters[(i+1)%len(w.clusters)]; other != c {
				faults = append(faults, switchFault(p, c, other))
			}
			parts = append(parts, part{a.id + "'s link to " + c.name, faults})
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
		{"database link", proxyFaults(db.proxy)},
		{"database replies", db.errorFaults()},
	}
}

// errorFaults returns faults in which the database answers statements with errors.
func (db *database) errorFaults() []fault {
	var faults []fault
	for i, code := range db.errors {
		answer := infallible(func() { db.errorInjector.FailEvery(code, 1+i%4) })
		faults = append(faults, fault{"are error " + code, answer, infallible(db.errorInjector.Reset), 8 * time.Second, 1})
	}
	return faults
}

// longestFreeze is the longest time for which a part is frozen: longer than any deadline in our
// programs, except those of operations that take minutes.
const longestFreeze = 25 * time.Second

// infallible converts a function without an error to one with an error.
func infallible(what func()) func(context.Context) error {
	return func(context.Context) error { what(); return nil }
}

func processFaults(p *process.Program) []fault {
	return []fault{
		{"is killed", infallible(p.Kill), infallible(p.Start), 3 * time.Second, 3},
		{"is restarted", infallible(p.Stop), infallible(p.Start), time.Second, 1},
		{"is paused", infallible(p.Pause), infallible(p.Resume), 8 * time.Second, 2},
		{"is paused for long", infallible(p.Pause), infallible(p.Resume), longestFreeze, 1},
	}
}

// slowStart starts an agent whose API servers answer late: discovery ends seconds before the first
// lists do, and kinds come and go in between.
func (a *agent) slowStart() fault {
	begin := func() {
		a.Kill()
		for _, p := range a.api {
			p.AddLatency(slowStartLatency)
		}
		a.Start()
	}
	end := func() {
		for _, p := range a.api {
			p.Heal()
		}
	}
	return fault{"starts behind slow links to its clusters", infallible(begin), infallible(end), 12 * time.Second, 2}
}

const slowStartLatency = 1200 * time.Millisecond

// proxyFaults returns the faults of a link. After a freeze, either the data that was held back
// continues, or the connections are lost.
func proxyFaults(p *proxy.Proxy) []fault {
	freeze := func(directions ...proxy.Direction) func(context.Context) error {
		return infallible(func() { p.Freeze(directions...) })
	}
	cutAndHeal := infallible(func() { p.Cut(); p.Heal() })
	return []fault{
		{"is cut", infallible(p.Cut), nil, 0, 2},
		{"loses its open connections", infallible(p.Blackhole), nil, 0, 2},
		{"refuses connections", infallible(p.Refuse), infallible(p.Heal), 5 * time.Second, 2},
		{"is slow", infallible(func() { p.Slow(150 * time.Millisecond) }), infallible(p.Heal), 6 * time.Second, 1},
		{"has high latency", infallible(func() { p.AddLatency(120 * time.Millisecond) }), infallible(p.Heal), 8 * time.Second, 1},
		{"has low bandwidth", infallible(func() { p.Limit(64 << 10) }), infallible(p.Heal), 8 * time.Second, 1},
		{"stalls mid-message, then continues", infallible(func() { p.StallAfter(proxy.Down, 3000) }), infallible(p.Heal), 8 * time.Second, 1},
		{"stalls mid-message, then is cut", infallible(func() { p.StallAfter(proxy.Down, 3000) }), cutAndHeal, 8 * time.Second, 1},
		{"is frozen, then continues", freeze(proxy.Up, proxy.Down), infallible(p.Heal), 8 * time.Second, 1},
		{"is frozen, then is cut", freeze(proxy.Up, proxy.Down), cutAndHeal, 8 * time.Second, 1},
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
		c.restoreFault(),
	}
}

// restored is the name of the fault in which a cluster goes back to an earlier state.
const restored = "is backed up and restored"

// restoreFault puts etcd's data back to what it was when the fault began.
func (c *cluster) restoreFault() fault {
	var dir string
	backUp := func(ctx context.Context) (err error) {
		if dir, err = os.MkdirTemp(filepath.Dir(c.audit), c.name+"-backup-"); err != nil {
			return err
		}
		return c.Backup(ctx, filepath.Join(dir, "etcd"))
	}
	restore := func(ctx context.Context) error { return c.Restore(ctx, filepath.Join(dir, "etcd")) }
	return fault{restored, backUp, restore, 6 * time.Second, 1}
}

// incident is a fault at a time.
type incident struct {
	part     string
	fault    fault
	at       time.Duration // since the start of the schedule
	duration time.Duration
}

func (i incident) String() string {
	if i.fault.end == nil {
		return fmt.Sprintf("%6.2fs  %s %s", i.at.Seconds(), i.part, i.fault.name)
	}
	return fmt.Sprintf("%6.2fs  %s %s, for %.2fs", i.at.Seconds(), i.part, i.fault.name, i.duration.Seconds())
}

// schedule draws n incidents. Incidents of different parts may overlap, those of one part do not.
// They are in the order of their start.
func schedule(rng *rand.Rand, parts []part, n int, length time.Duration) []incident {
	freeAt := map[string]time.Duration{} // end of the part's last incident
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
		n -= f.weight
		if n < 0 {
			return f
		}
	}
	panic("weights do not add up")
}
