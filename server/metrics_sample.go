package server

import (
	"context"
	"database/sql"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/assigner"
	"github.com/vedette-io/vedette/server/metrics"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/upstream"
)

// sampleServices makes scrapes read the state of the services. All of it is in memory.
func sampleServices(m *metrics.Metrics, v *services) {
	m.OnScrape(func() {
		sampleLoad(&m.State, v.assignments.Load())
		for reason, n := range v.assignments.CacherChanges() {
			m.State.CacherChanges.Set(float64(n.Done), string(reason), "done")
			m.State.CacherChanges.Set(float64(n.Failed), string(reason), "failed")
		}
		if v.metrics.isEnabled() {
			v.metrics.sample(v.assignments.AccountLoads())
		}
		drift := v.ingest.Drift()
		m.State.Drift.Set(float64(drift.Missing), "missing")
		m.State.Drift.Set(float64(drift.LeftOver), "left_over")
		m.State.Drift.Set(float64(drift.Changed), "changed")
		m.State.RestoredFeeds.Set(float64(drift.RestoredFeeds))
		m.State.Omitted.Set(float64(v.ingest.Omitted()))
		m.State.TasksRunning.Set(float64(v.tasks.Running()))
		sampleDatabase(&m.State, v.store)
		for pool, stats := range v.store.PoolStats() {
			samplePool(&m.State, string(pool), stats)
		}
		for _, shard := range v.store.Shards() {
			for _, stats := range shard.PoolStats() { // it has one pool
				samplePool(&m.State, "shard "+shard.Name, stats)
			}
			m.State.ShardAnswers.Set(boolToFloat(shard.HasAnswered()), shard.Name)
			m.State.ShardWritable.Set(boolToFloat(shard.WriteProblem() == ""), shard.Name)
		}
	})
}

func samplePool(to *metrics.State, pool string, stats sql.DBStats) {
	to.PoolOpen.Set(float64(stats.OpenConnections), pool)
	to.PoolInUse.Set(float64(stats.InUse), pool)
	to.PoolLimit.Set(float64(stats.MaxOpenConnections), pool)
	to.PoolWaits.Set(float64(stats.WaitCount), pool)
	to.PoolWaitTime.Set(stats.WaitDuration.Seconds(), pool)
}

func boolToFloat(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func sampleDatabase(to *metrics.State, st *store.Store) {
	current := st.WriteProblem()
	for _, problem := range sqldb.WriteProblems() {
		value := 0.0
		if problem == current {
			value = 1
		}
		to.WriteProblem.Set(value, string(problem))
	}
	if space, known := st.DiskSpace(); known {
		to.DiskFree.Set(float64(space.Free))
		to.DiskSize.Set(float64(space.Total))
	}
}

func sampleLoad(to *metrics.State, l assigner.Load) {
	to.Agents.Set(float64(l.Agents))
	to.FreshnessAge.Set(l.Oldest.Seconds())
	for _, s := range []struct {
		state    string
		accounts int
	}{
		{"reported", l.Reported}, {"failing", l.Failing}, {"stalled", l.Stalled}, {"orphaned", l.Orphaned},
		{"refused", l.Refused}, {"unreachable", l.Reaching},
	} {
		to.Accounts.Set(float64(s.accounts), s.state)
	}
}

// samplePeers makes scrapes read how many connections there are between servers.
func samplePeers(m *metrics.Metrics, p *peers) {
	m.OnScrape(func() {
		m.State.PeerConnections.Set(float64(p.server.Connections()), "in")
		m.State.PeerConnections.Set(float64(p.client.Connections()), "out")
	})
}

// sampleUpstream makes scrapes read what was counted about the Clouddriver behind this server.
func sampleUpstream(m *metrics.Metrics, remote *upstream.Remote) {
	m.OnScrape(func() {
		stats := remote.Stats()
		m.State.UpstreamRequests.Set(float64(stats.Requests))
		m.State.UpstreamTime.Set(stats.Time.Seconds())
		for reason, n := range stats.Failures {
			m.State.UpstreamFailures.Set(float64(n), reason)
		}
		m.State.UpstreamLastAnswers.Set(float64(stats.LastAnswers))
		for answer, age := range stats.Ages {
			m.State.UpstreamAge.Set(age.Seconds(), answer)
		}
	})
}

// fleetInterval is how often the feeds in the database are counted, which reads all of their rows.
const fleetInterval = 30 * time.Second

// countFleet counts accounts, feeds and objects in the database until ctx ends. If nobody can read
// the metrics, it does nothing.
func (s *Server) countFleet(ctx context.Context, st *store.Store, each *accountMetrics) error {
	if s.metricsListener == nil {
		return nil
	}
	ticker := time.NewTicker(fleetInterval)
	defer ticker.Stop()
	for {
		if err := countFleetOnce(ctx, st, &s.cfg.Metrics.Fleet, each); err != nil && ctx.Err() == nil {
			s.log.Warn("cannot count feeds for metrics, retrying", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func countFleetOnce(ctx context.Context, st *store.Store, to *metrics.Fleet, each *accountMetrics) error {
	names, err := st.AccountNames(ctx)
	if err != nil {
		return err
	}
	counts, err := countFeeds(ctx, st, each)
	if err != nil {
		return err
	}
	objects := int64(0)
	for _, state := range vedette.FeedStates {
		to.Feeds.WithLabelValues(string(state)).Set(float64(counts[state].Feeds))
		objects += counts[state].Objects
	}
	to.Accounts.WithLabelValues().Set(float64(len(names)))
	to.Objects.WithLabelValues().Set(float64(objects))
	return nil
}

func countFeeds(ctx context.Context, st *store.Store, each *accountMetrics) (map[vedette.FeedState]read.FeedCount, error) {
	if !each.isEnabled() {
		return st.FeedCounts(ctx)
	}
	byAccount, err := st.FeedCountsByAccount(ctx)
	if err != nil {
		return nil, err
	}
	each.counts.Store(&byAccount)
	total := map[vedette.FeedState]read.FeedCount{}
	for _, counts := range byAccount {
		for state, c := range counts {
			total[state] = read.FeedCount{Feeds: total[state].Feeds + c.Feeds, Objects: total[state].Objects + c.Objects}
		}
	}
	return total, nil
}

// serveMetrics serves the metrics until ctx ends, if their port is open.
func (s *Server) serveMetrics(ctx context.Context) error {
	if s.metricsListener == nil {
		return nil
	}
	return s.cfg.Metrics.Serve(ctx, s.metricsListener, s.cfg.MetricsTLS, s.log)
}
