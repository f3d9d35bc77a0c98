package membership

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/lease"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// Store keeps the rows of servers.
type Store interface {
	SharingServers(ctx context.Context) ([]sqldb.SharingServer, error)
	EvictServer(ctx context.Context, s sqldb.SharingServer) (bool, error)
}

// Config configures a Membership.
type Config struct {
	Self  vedette.ServerID
	Store Store
	Log   *slog.Logger
	// OnEnded is called with a server that has ended. It must not block.
	OnEnded func(vedette.ServerID)
	// Release releases in the database what servers had that have no row any more.
	Release func(context.Context) error
}

// Membership knows the servers that share the database. It is safe for concurrent use.
type Membership struct {
	cfg      Config
	observer *observer // guarded by reading
	current  atomic.Pointer[Servers]
	since    atomic.Pointer[time.Time] // when the last read of current began

	reading sync.Mutex // held while the table is read
	readAt  time.Time  // when the last read began; guarded by reading

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when the servers change
}

// Servers are the servers that had a row when the table was last read, by id. It is not changed.
type Servers map[vedette.ServerID]sqldb.SharingServer

const (
	readInterval    = 500 * time.Millisecond // between reads of the table
	releaseInterval = 10 * time.Second       // between looks for what servers had that have no row
	absenceAge      = 100 * time.Millisecond // for how long it counts for accounts that a server had no row
)

// New returns a Membership that knows no server before the first Read.
func New(cfg Config) *Membership {
	m := &Membership{cfg: cfg, observer: newObserver(cfg.Self), changed: make(chan struct{})}
	m.current.Store(&Servers{})
	m.since.Store(&time.Time{})
	return m
}

// Current returns the servers, also this one and those that are not heard at present.
func (m *Membership) Current() Servers { return *m.current.Load() }

// HasOthers reports whether another server accepts agents, as far as is known.
func (m *Membership) HasOthers() bool {
	for id, s := range m.Current() {
		if id != m.cfg.Self && s.State == sqldb.ServerRunning {
			return true
		}
	}
	return false
}

// CurrentSince returns when the last read of the current servers began; the zero time before the first.
func (m *Membership) CurrentSince() time.Time { return *m.since.Load() }

// IsAlive reports whether a server that an account's row names has a row. If the servers that were read last do not have it, they are
// read again, because it may have started since then; not for each of the thousands of accounts that a server had which has just ended,
// whose takeover is fenced by their terms. A server that has ended a moment ago may have a row, and so may one of which this cannot be
// found out now.
func (m *Membership) IsAlive(ctx context.Context, id vedette.ServerID) bool {
	return m.isAliveSince(ctx, time.Now().Add(-absenceAge), id, func(string) bool { return true })
}

// IsProcessAlive is IsAlive as of now, for a process of the server, which isIt recognizes by its token.
func (m *Membership) IsProcessAlive(ctx context.Context, id vedette.ServerID, isIt func(token string) bool) bool {
	return m.isAliveSince(ctx, time.Now(), id, isIt)
}

func (m *Membership) isAliveSince(ctx context.Context, since time.Time, id vedette.ServerID, isIt func(token string) bool) bool {
	has := func() bool {
		row, exists := m.Current()[id]
		return exists && isIt(row.Token)
	}
	return has() || m.readSince(ctx, since) != nil || has()
}

// Changed returns a channel that is closed when a server appears, disappears, or changes its state.
func (m *Membership) Changed() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

// Read reads the servers, and evicts those that have not renewed their rows.
func (m *Membership) Read(ctx context.Context) error { return m.readSince(ctx, time.Now()) }

// readSince is Read, unless a read that began at a time or later has succeeded: many ask at once when a server has ended.
func (m *Membership) readSince(ctx context.Context, since time.Time) error {
	m.reading.Lock()
	defer m.reading.Unlock()
	if !m.readAt.Before(since) {
		return nil
	}
	readAt := time.Now()
	rows, err := m.cfg.Store.SharingServers(ctx)
	if err != nil {
		return err
	}
	for _, row := range m.observer.observe(rows, readAt) {
		evicted, err := m.cfg.Store.EvictServer(ctx, row)
		if err != nil {
			return err
		}
		if evicted {
			m.cfg.Log.Warn("evicted a server that has not renewed its lease: look whether it is frozen, or cut off from the database", "server", row.ID,
				"host", row.Host, "seen", row.Now.Sub(row.Renewed).Round(time.Millisecond))
			rows = slices.DeleteFunc(rows, func(s sqldb.SharingServer) bool { return s.ID == row.ID })
		}
	}
	m.publish(rows)
	m.readAt = readAt
	m.since.Store(&readAt)
	return nil
}

// publish makes rows the current servers, and reports those that have ended.
func (m *Membership) publish(rows []sqldb.SharingServer) {
	next := Servers{}
	for _, row := range rows {
		next[row.ID] = row
	}
	before := m.Current()
	m.current.Store(&next)
	changed := len(before) != len(next)
	for id, row := range next {
		known, isKnown := before[id]
		changed = changed || !isKnown || known.Token != row.Token || known.State != row.State
		if (!isKnown || known.Token != row.Token) && id != m.cfg.Self {
			m.cfg.Log.Info("server joined", "server", id, "host", row.Host, "version", row.Version)
		}
	}
	for id, row := range before {
		now, remains := next[id]
		if !remains || now.Token != row.Token { // another process has the id now
			m.cfg.Log.Info("server left", "server", id, "host", row.Host)
			m.cfg.OnEnded(id)
		}
	}
	if !changed {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.changed)
	m.changed = make(chan struct{})
}

// Run reads the servers again and again, until ctx ends, and releases what those had that have ended.
func (m *Membership) Run(ctx context.Context) error {
	var releasing sync.WaitGroup
	releasing.Go(func() { m.runReleases(ctx) })
	defer releasing.Wait()
	tick := time.NewTicker(readInterval)
	defer tick.Stop()
	var failing bool
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := m.Read(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			m.cfg.Log.Warn("retrying to read which servers share the database", "error", err)
		}
		failing = err != nil
	}
}

// runReleases releases what servers had when one has ended, and now and then, because the server that has evicted it may have ended
// itself. It waits for a moment: servers that have agents for the accounts take them over.
func (m *Membership) runReleases(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		changed := m.Changed()
		select {
		case <-ctx.Done():
			return
		case <-changed:
			timer.Reset(lease.RenewInterval)
			continue
		case <-timer.C:
		}
		if err := m.cfg.Release(ctx); err != nil && ctx.Err() == nil {
			m.cfg.Log.Warn("retrying to release the accounts and operations of servers that have ended", "error", err)
		}
		timer.Reset(releaseInterval)
	}
}
