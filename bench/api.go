package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/bench/dataset"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// apiLatency measures how long every list endpoint of Clouddriver's API takes, on each database,
// for an application of 1,000 workloads, one of 20 Pods, and a large fleet. Results have the order of
// databaseCases.
//
// No simulated clusters fill such fleets in reasonable time, so the database is filled by package dataset. The server is the
// program that users run. One agent without clusters registers all accounts and resumes their feeds, so that the server takes
// the stored data as current, and changes go the way of all changes. The agent's shape must be the one that the server would
// store, or else the server would ask for all objects again; so one account is registered first and read back. Each endpoint
// is measured after a change of one Pod of its application (no cached answer is valid), unchanged, and with the ETag of an
// unchanged answer. Endpoints that the server does not have are listed as not measured.
//
// To compare the ingest of two commits, run go run ./bench --only store --json FILE in a worktree of each, one after the
// other and more than once: other work on the machine changes the figures more than most commits do.
func apiLatency(ctx context.Context, b *bench) error {
	for _, d := range b.databases {
		for _, fleet := range []apiFleet{
			{"50 accounts", dataset.Mixed(), []apiApplication{{dataset.BigApplication, 30, 120}, {dataset.SmallApplication, 3, 15}}, 30, 120},
			{"5,000 accounts", dataset.Large(), []apiApplication{{dataset.SmallApplication, 3, 15}}, 50, 200},
		} {
			fleet.dataset = fleet.dataset.Scale(b.scaleDown())
			err := b.withDatabase(d, func(url string) error { return b.measureFleet(ctx, d.name+", "+fleet.name, url, fleet) })
			if err != nil {
				return fmt.Errorf("%s, %s: %w", d.name, fleet.name, err)
			}
		}
	}
	b.table.mergeDatabases(b.table.part, b.databases)
	return nil
}

// scaleDown returns by what the numbers of a dataset are divided.
func (b *bench) scaleDown() int {
	if b.quick {
		return 10
	}
	return 1
}

// apiFleet is a dataset with targets in milliseconds.
type apiFleet struct {
	name         string
	dataset      dataset.Dataset
	applications []apiApplication
	p50, p99     float64 // of requests about the fleet
}

type apiApplication struct {
	name     string
	p50, p99 float64
}

// measureFleet fills a database, starts a server with an agent on it, and measures all requests.
func (b *bench) measureFleet(ctx context.Context, name, database string, fleet apiFleet) error {
	shape, err := b.learnShape(ctx, database)
	if err != nil {
		return fmt.Errorf("learn the shape of accounts: %w", err)
	}
	logf("%s: writing %d objects", name, fleet.dataset.Objects)
	if err := fillDatabase(ctx, database, fleet.dataset, shape); err != nil {
		return fmt.Errorf("write the dataset: %w", err)
	}
	srv, err := b.startServer(ctx, database)
	if err != nil {
		return err
	}
	defer srv.stop()
	agent, err := startFleetAgent(ctx, srv.grpc, fleet.dataset)
	if err != nil {
		return fmt.Errorf("connect the agent: %w", err)
	}
	defer agent.stop()
	if err := srv.awaitLive(ctx); err != nil {
		return err
	}
	m := apiMeasurer{bench: b, server: srv, agent: agent, fleet: name, p50: fleet.p50, p99: fleet.p99}
	for _, application := range fleet.applications {
		if err := m.measureApplication(ctx, fleet.dataset, application); err != nil {
			return err
		}
	}
	return m.measureFleetRequests(ctx, fleet) // last, because it moves what the names above mean
}

// learnShape returns the shape in which the server stores objects. It registers an account with an
// empty database, and removes it.
func (b *bench) learnShape(ctx context.Context, database string) (string, error) {
	probe := dataset.Dataset{Accounts: 1}.Account(0)
	if err := b.registerOnce(ctx, database, probe); err != nil {
		return "", err
	}
	st, err := store.Open(ctx, sqldb.Config{URL: database})
	if err != nil {
		return "", err
	}
	defer st.Close()
	row, err := st.Account(ctx, probe.Name)
	if err != nil {
		return "", err
	}
	return row.Shape, st.RemoveAccount(ctx, row.Name)
}

// registerOnce starts a server, registers an account with it, and stops it.
func (b *bench) registerOnce(ctx context.Context, database string, account vedette.Account) error {
	srv, err := b.startServer(ctx, database)
	if err != nil {
		return err
	}
	defer srv.stop()
	a := connectFleetAgent(ctx, srv.grpc, 1)
	defer a.stop()
	if err := a.link.Register(account); err != nil {
		return err
	}
	_, err = a.awaitAssignment(ctx)
	return err
}

func fillDatabase(ctx context.Context, database string, d dataset.Dataset, shape string) error {
	st, err := store.Open(ctx, sqldb.Config{URL: database})
	if err != nil {
		return err
	}
	defer st.Close()
	if err := dataset.FillInShape(ctx, st, d, shape); err != nil {
		return err
	}
	return analyzeTables(ctx, database)
}

// apiMeasurer measures requests to one server.
type apiMeasurer struct {
	bench  *bench
	server *server
	agent  *fleetAgent
	fleet  string // for the table

	p50, p99 float64 // targets of requests about the fleet
}

// measureFleetRequests measures requests about all accounts, after an application has got another
// cluster.
func (m *apiMeasurer) measureFleetRequests(ctx context.Context, fleet apiFleet) error {
	changer, err := fleet.dataset.NewClusterChanger(dataset.SmallApplication)
	if err != nil {
		return err
	}
	return m.measureAll(ctx, fleetRequests(fleet.p50, fleet.p99), func() error {
		deployment, err := changer.Next()
		if err != nil {
			return err
		}
		return m.agent.change(ctx, changer.Account, deployment)
	})
}

func (m *apiMeasurer) measureApplication(ctx context.Context, d dataset.Dataset, application apiApplication) error {
	names, err := m.server.findNames(ctx, application.name)
	if err != nil {
		return err
	}
	changer, err := d.NewChanger(application.name)
	if err != nil {
		return err
	}
	requests := slices.Concat(names.requests(application.p50, application.p99), names.searches(m.p50, m.p99))
	return m.measureAll(ctx, requests, func() error {
		pod, err := changer.Next()
		if err != nil {
			return err
		}
		return m.agent.change(ctx, changer.Account, pod)
	})
}

// The number of requests: until maxRequests are measured, or apiTime has passed and minRequests are
// measured.
const (
	minRequests = 5
	maxRequests = 200
	apiTime     = 3 * time.Second
)

// measureAll adds a row for each request. Change changes what is requested.
func (m *apiMeasurer) measureAll(ctx context.Context, requests []viewRequest, change func() error) error {
	for _, request := range requests {
		first, err := m.server.timeGet(ctx, request.path, "")
		if err != nil {
			return err
		}
		if first.status != http.StatusOK {
			m.bench.table.add(row{measure: m.fleet + ", " + request.name, target: request.target(), result: "-",
				remark: fmt.Sprintf("not measured: the server answers with status %d", first.status)})
			continue
		}
		if err := m.measure(ctx, request, first, change); err != nil {
			return fmt.Errorf("%s: %w", request.path, err)
		}
	}
	return nil
}

// measure measures a request in up to three ways: after a change, unchanged, and with the ETag of
// an unchanged answer.
func (m *apiMeasurer) measure(ctx context.Context, request viewRequest, first apiAnswer, change func() error) error {
	r := row{measure: m.fleet + ", " + request.name, target: request.target(),
		values: map[string]float64{"firstMs": milliseconds(first.took), "bytes": float64(first.bytes)}}
	unchanged, err := m.repeat(ctx, request.path, "", nil)
	if err != nil {
		return err
	}
	main := unchanged
	if change != nil && request.changes {
		main, err = m.repeat(ctx, request.path, "", change)
		if err != nil {
			return err
		}
		main.addTo(r.values, "changed")
	}
	unchanged.addTo(r.values, "unchanged")
	r.result = main.String()
	r.remark = fmt.Sprintf("%s; unchanged %s; first %.1f ms", formatBytes(first.bytes), unchanged, milliseconds(first.took))
	last, err := m.server.timeGet(ctx, request.path, "")
	if err != nil {
		return err
	}
	if last.etag != "" {
		notModified, err := m.repeat(ctx, request.path, last.etag, nil)
		if err != nil {
			return err
		}
		notModified.addTo(r.values, "notModified")
		r.remark += fmt.Sprintf("; with ETag %s (%d of %d not modified)", notModified, notModified.statuses[http.StatusNotModified], len(notModified.times))
	}
	if request.p50 > 0 {
		r.ratio = percentOfTarget(milliseconds(main.quantile(50)), request.p50)
	}
	m.bench.table.add(r)
	return nil
}

func (r viewRequest) target() string { return fmt.Sprintf("p50 %.0f ms, p99 %.0f ms", r.p50, r.p99) }

// repeat sends a request again and again, each time after a change if change is not nil.
func (m *apiMeasurer) repeat(ctx context.Context, path, etag string, change func() error) (apiTimes, error) {
	t := apiTimes{statuses: map[int]int{}}
	for start := time.Now(); len(t.times) < maxRequests && (len(t.times) < minRequests || time.Since(start) < apiTime); {
		if change != nil {
			if err := change(); err != nil {
				return t, err
			}
		}
		answer, err := m.server.timeGet(ctx, path, etag)
		if err != nil {
			return t, err
		}
		if answer.status != http.StatusOK && answer.status != http.StatusNotModified {
			return t, fmt.Errorf("the server answered with status %d after it had answered with 200", answer.status)
		}
		t.times = append(t.times, answer.took)
		t.statuses[answer.status]++
	}
	slices.Sort(t.times)
	return t, nil
}

// apiTimes are the times of one request, sorted.
type apiTimes struct {
	times    []time.Duration
	statuses map[int]int
}

func (t apiTimes) quantile(percent int) time.Duration {
	return t.times[min(len(t.times)-1, len(t.times)*percent/100)]
}

func (t apiTimes) String() string {
	return fmt.Sprintf("p50 %.1f ms, p99 %.1f ms", milliseconds(t.quantile(50)), milliseconds(t.quantile(99)))
}

func (t apiTimes) addTo(values map[string]float64, name string) {
	values[name+"P50Ms"], values[name+"P99Ms"] = milliseconds(t.quantile(50)), milliseconds(t.quantile(99))
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func formatBytes(n int64) string {
	if n < 100_000 {
		return fmt.Sprintf("%.1f KB", float64(n)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// apiAnswer is the answer to one request.
type apiAnswer struct {
	status int
	bytes  int64
	etag   string
	took   time.Duration // until the last byte
}

// timeGet sends a request as Spinnaker's services do, over a connection that is kept.
func (s *server) timeGet(ctx context.Context, path, etag string) (apiAnswer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.rest+path, nil)
	if err != nil {
		return apiAnswer{}, err
	}
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	start := time.Now()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return apiAnswer{}, err
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	return apiAnswer{resp.StatusCode, n, resp.Header.Get("ETag"), time.Since(start)}, err
}
