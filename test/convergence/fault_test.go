package convergence

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/vedette-io/vedette/test/faults"
)

// parts returns all components that can fail.
func (w *world) parts() []faults.Part {
	parts := []faults.Part{faults.NewPart("server", faults.OfProcess(w.server)...)}
	for _, a := range w.agents {
		parts = append(parts, faults.NewPart(a.id, append(faults.OfProcess(a.Program), a.slowStart())...), faults.NewPart(a.id+"'s link", faults.OfLink(a.link)...))
		for i, c := range w.clusters {
			p := a.api[c]
			if p == nil {
				continue
			}
			list := faults.OfLink(p)
			if other := w.clusters[(i+1)%len(w.clusters)]; other != c {
				list = append(list, switchFault(p, c, other))
			}
			parts = append(parts, faults.NewPart(a.id+"'s link to "+c.name, list...))
		}
	}
	for _, c := range w.clusters {
		parts = append(parts, faults.NewPart(c.name, clusterFaults(c)...))
	}
	return append(parts, w.db.parts()...)
}

func (db *database) parts() []faults.Part {
	if db.proxy == nil {
		parts := []faults.Part{faults.NewPart("database", faults.New("is locked", db.lock, db.unlock, faults.LongestFreeze, 1))}
		if db.disk.mounted {
			parts = append(parts, faults.NewPart("disk",
				faults.New("is full", faults.Infallible(db.disk.fill), faults.Infallible(db.disk.free), 5*time.Second, 1)))
		}
		return parts
	}
	parts := db.serverParts("")
	if db.shard != nil {
		parts = append(parts, db.shard.serverParts("other ")...)
	}
	return parts
}

// serverParts are those of a database server.
func (db *database) serverParts(which string) []faults.Part {
	return []faults.Part{
		faults.NewPart(which+"database",
			faults.New("is killed", faults.Infallible(db.kill), faults.Infallible(db.start), 4*time.Second, 2),
			faults.New("is frozen", faults.Infallible(db.pause), faults.Infallible(db.resume), faults.LongestFreeze, 1),
		),
		faults.NewPart(which+"database link", faults.OfLink(db.proxy)...),
		faults.NewPart(which+"database replies", db.errorFaults()...),
	}
}

// errorFaults returns faults in which the database answers statements with errors.
func (db *database) errorFaults() []faults.Fault {
	var list []faults.Fault
	for i, code := range db.errors {
		answer := faults.Infallible(func() { db.errorInjector.FailEvery(code, 1+i%4) })
		list = append(list, faults.New("are error "+code, answer, faults.Infallible(db.errorInjector.Reset), 8*time.Second, 1))
	}
	return list
}

// slowStart starts an agent whose API servers answer late: discovery ends seconds before the first
// lists do, and kinds come and go in between.
func (a *agent) slowStart() faults.Fault {
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
	return faults.New("starts behind slow links to its clusters", faults.Infallible(begin), faults.Infallible(end), 12*time.Second, 2)
}

const slowStartLatency = 1200 * time.Millisecond

func clusterFaults(c *cluster) []faults.Fault {
	pause := func(context.Context) error { return c.PauseAPIServer() }
	resume := func(context.Context) error { return c.ResumeAPIServer() }
	pauseEtcd := func(context.Context) error { return c.PauseEtcd() }
	resumeEtcd := func(context.Context) error { return c.ResumeEtcd() }
	return []faults.Fault{
		faults.New("loses its API server", faults.Infallible(c.KillAPIServer), c.StartAPIServer, 3*time.Second, 2),
		faults.New("restarts its API server", c.StopAPIServer, c.StartAPIServer, time.Second, 1),
		faults.New("pauses its API server", pause, resume, 8*time.Second, 1),
		faults.New("pauses its API server for long", pause, resume, faults.LongestFreeze, 1),
		faults.New("pauses etcd", pauseEtcd, resumeEtcd, faults.LongestFreeze, 1),
		faults.New("forgets all marks", c.Expire, nil, 0, 2),
		faults.New("is compacted", c.Compact, nil, 0, 1),
		faults.New("loses etcd", faults.Infallible(c.KillEtcd), c.StartEtcd, 2*time.Second, 1),
		c.restoreFault(),
	}
}

// restored is the name of the fault in which a cluster goes back to an earlier state.
const restored = "is backed up and restored"

// restoreFault puts etcd's data back to what it was when the fault began.
func (c *cluster) restoreFault() faults.Fault {
	var dir string
	backUp := func(ctx context.Context) (err error) {
		if dir, err = os.MkdirTemp(filepath.Dir(c.audit), c.name+"-backup-"); err != nil {
			return err
		}
		return c.Backup(ctx, filepath.Join(dir, "etcd"))
	}
	restore := func(ctx context.Context) error { return c.Restore(ctx, filepath.Join(dir, "etcd")) }
	return faults.New(restored, backUp, restore, 6*time.Second, 1)
}
