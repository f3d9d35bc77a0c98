package main

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/outbox"
	"github.com/vedette-io/vedette/agent/uplink"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/test/corpus"
	"github.com/vedette-io/vedette/test/databases"
	"github.com/vedette-io/vedette/wire"
)

// databaseCase is a type of database with its targets.
type databaseCase struct {
	name  string
	bytes float64 // per object, indexes included
	rate  float64 // objects per second through Commit; 0 for no target
	open  func(l *fakeTB) string
}

// The database servers sync to disk at each commit, as in production.
var databaseCases = []databaseCase{
	{"SQLite", 1000, 0, func(l *fakeTB) string { return "sqlite:" + filepath.Join(l.dir, "v.db") }},
	{"PostgreSQL", 1000, 20000, func(l *fakeTB) string {
		return databases.StartPostgreSQL(l, databases.Options{Durable: true}).URL
	}},
	{"MariaDB", 1600, 0, func(l *fakeTB) string {
		return databases.StartMariaDB(l, databases.Options{Durable: true}).URL
	}},
}

// selectDatabases returns the databases with the given names; none means all.
func selectDatabases(names string) ([]databaseCase, error) {
	if names == "" {
		return databaseCases, nil
	}
	var selected []databaseCase
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(databaseCases, func(d databaseCase) bool { return strings.EqualFold(d.name, name) })
		if i < 0 {
			return nil, fmt.Errorf("unknown database %q: use SQLite, PostgreSQL or MariaDB", name)
		}
		selected = append(selected, databaseCases[i])
	}
	return selected, nil
}

// storeRates measures for each database the bytes per object, and the objects per second of the
// store and of the whole server.
func storeRates(ctx context.Context, b *bench) error {
	objects := corpus.New(1).Objects(b.scale(20000))
	for _, d := range b.databases {
		if err := b.withDatabase(d, func(url string) error { return b.commitRate(ctx, d, url, objects) }); err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		if err := b.withDatabase(d, func(url string) error { return b.ingestRate(ctx, d, url, objects) }); err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
	}
	return nil
}

// withDatabase runs do with an empty database.
func (b *bench) withDatabase(d databaseCase, do func(url string) error) (err error) {
	dir, err := os.MkdirTemp(b.dir, "database-")
	if err != nil {
		return err
	}
	l := &fakeTB{dir: dir}
	defer func() {
		if fatal, ok := recover().(fatalError); ok {
			err = fatal.error
		}
		if cleanupErr := l.runCleanups(); err == nil {
			err = cleanupErr
		}
	}()
	return do(d.open(l))
}

// fakeTB is a testing.TB for package databases, which starts databases for tests.
type fakeTB struct {
	testing.TB // nil: only the methods below are called
	dir        string
	cleanups   []func()
	err        error
}

// fatalError is the panic value of Fatal.
type fatalError struct{ error }

func (*fakeTB) Helper()             {}
func (l *fakeTB) Cleanup(f func())  { l.cleanups = append(l.cleanups, f) }
func (l *fakeTB) Error(args ...any) { l.err = fmt.Errorf("%s", fmt.Sprint(args...)) }
func (l *fakeTB) Fatal(args ...any) { panic(fatalError{fmt.Errorf("%s", fmt.Sprint(args...))}) }

func (l *fakeTB) runCleanups() error {
	for i := len(l.cleanups) - 1; i >= 0; i-- {
		l.cleanups[i]()
	}
	return l.err
}

const synthetic vedette.AccountName = "synthetic"

// commitRate commits batches of 500 objects, and then an update of each object.
func (b *bench) commitRate(ctx context.Context, d databaseCase, at string, objects []vedette.Object) error {
	s, err := store.Open(ctx, sqldb.Config{URL: at})
	if err != nil {
		return err
	}
	defer s.Close()
	term, err := claimAccount(ctx, s)
	if err != nil {
		return err
	}
	inserted, err := commitAll(ctx, s, term, objects)
	if err != nil {
		return err
	}
	if err := analyzeTables(ctx, at); err != nil {
		return err
	}
	stats, err := s.Stats(ctx)
	if err != nil {
		return err
	}
	touched, toucher := make([]vedette.Object, len(objects)), corpus.New(2)
	for i, o := range objects {
		touched[i] = toucher.Touch(o)
	}
	updated, err := commitAll(ctx, s, term, touched)
	if err != nil {
		return err
	}
	n := float64(len(objects))
	each := float64(stats.Bytes) / n
	b.table.add(row{measure: d.name + ", bytes per object", target: fmt.Sprintf("%.0f", d.bytes), result: fmt.Sprintf("%.0f", each),
		ratio:  percentOfTarget(each, d.bytes),
		remark: fmt.Sprintf("%.1f MB for %.0f objects, indexes included", float64(stats.Bytes)/1e6, n)})
	r := row{measure: d.name + ", commits of 500",
		result: fmt.Sprintf("%.0f objects/s, updates %.0f/s", n/inserted.Seconds(), n/updated.Seconds()), remark: "one writer, one account"}
	if d.rate > 0 {
		r.target, r.ratio = fmt.Sprintf("%.0f/s", d.rate), percentOfTarget(n/inserted.Seconds(), d.rate)
	}
	b.table.add(r)
	return nil
}

// analyzeTables updates the table sizes of MariaDB, which are otherwise those of the empty
// tables.
func analyzeTables(ctx context.Context, database string) error {
	if !strings.HasPrefix(database, "mysql:") {
		return nil
	}
	dsn, err := databases.MySQLDSN(database)
	if err != nil {
		return err
	}
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	var tables string
	err = db.QueryRowContext(ctx, "SELECT GROUP_CONCAT(table_name) FROM information_schema.tables WHERE table_schema = DATABASE()").Scan(&tables)
	if err != nil {
		return err
	}
	rows, err := db.QueryContext(ctx, "ANALYZE TABLE "+tables)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
	}
	return rows.Err()
}

// claimAccount registers the account, acquires it and declares its feeds.
func claimAccount(ctx context.Context, s *store.Store) (vedette.Term, error) {
	if _, err := s.Register(ctx, vedette.Account{Name: synthetic, Cluster: vedette.Cluster{UID: "synthetic"}}); err != nil {
		return 0, err
	}
	term, err := s.Acquire(ctx, synthetic, registry.CacherClaim{Agent: "bench", Server: "bench"})
	if err != nil {
		return 0, err
	}
	var feeds []commit.DeclaredFeed
	for _, r := range corpus.Kinds {
		feeds = append(feeds, commit.DeclaredFeed{Feed: vedette.Feed{Kind: r.Kind}, Resource: r})
	}
	_, err = s.Declare(ctx, synthetic, term, feeds, nil)
	return term, err
}

func commitAll(ctx context.Context, s *store.Store, term vedette.Term, objects []vedette.Object) (time.Duration, error) {
	began := time.Now()
	for len(objects) > 0 {
		n := min(500, len(objects))
		mark := vedette.Mark(objects[n-1].ResourceVersion)
		_, err := s.Commit(ctx, commit.Batch{Account: synthetic, Term: term, Upserts: objects[:n],
			Feeds: []commit.FeedUpdate{{Feed: vedette.Feed{Kind: corpus.Kinds[0].Kind}, Mark: &mark, State: vedette.FeedLive}}})
		if err != nil {
			return 0, err
		}
		objects = objects[n:]
	}
	return time.Since(began), nil
}

// ingestRate sends the same objects to a server from an agent that has them in memory.
func (b *bench) ingestRate(ctx context.Context, d databaseCase, url string, objects []vedette.Object) error {
	if d.name == "SQLite" {
		url = ""
	}
	srv, err := b.startServer(ctx, url)
	if err != nil {
		return err
	}
	defer srv.stop()
	ctx, cancel := context.WithCancel(ctx)
	a := newAgentSender(srv.grpc)
	ended := make(chan error, 1)
	go func() { ended <- a.link.Run(ctx) }()
	defer func() {
		cancel()
		<-ended
	}()
	if err := a.register(ctx); err != nil {
		return err
	}
	before, err := srv.usage()
	if err != nil {
		return err
	}
	took, err := a.send(ctx, objects)
	if err != nil {
		return err
	}
	after, err := srv.usage()
	if err != nil {
		return err
	}
	n := float64(len(objects))
	cpu := (after.CPU - before.CPU).Seconds()
	b.table.add(row{measure: d.name + ", whole server over gRPC", target: "15000/s per core of server",
		result: fmt.Sprintf("%.0f objects/s", n/took.Seconds()),
		ratio:  percentOfTarget(n/cpu, 15000),
		remark: fmt.Sprintf("%.0f objects per second of the server's CPU; server %s", n/cpu, after.memory())})
	return nil
}

// agentSender is an agent without a cluster. It implements the uplink's listener, because the
// uplink is the only client of the server's gRPC.
type agentSender struct {
	box      *outbox.Box
	link     *uplink.Uplink
	assigned chan uplink.Assignment
}

func newAgentSender(to string) *agentSender {
	s := &agentSender{box: outbox.New(8 << 20), assigned: make(chan uplink.Assignment, 1)}
	s.link = uplink.New(uplink.Config{Target: to, Creds: insecure.NewCredentials(), Agent: "synthetic"}, s.box, s, nil,
		slog.New(slog.DiscardHandler))
	return s
}

// Connected implements the uplink's listener.
func (s *agentSender) Connected(uplink.ServerSettings) {}

// Assigned implements the uplink's listener.
func (s *agentSender) Assigned(a uplink.Assignment) { s.assigned <- a }

// Indexed implements the uplink's listener.
func (s *agentSender) Indexed(uplink.Index) {}

// VerifyAnswered implements the uplink's handler. Nothing is verified.
func (s *agentSender) VerifyAnswered(uplink.VerifyAnswer) {}

// register registers the account and declares its feeds.
func (s *agentSender) register(ctx context.Context) error {
	if err := s.link.Register(vedette.Account{Name: synthetic, Cluster: vedette.Cluster{UID: "synthetic"}}); err != nil {
		return err
	}
	select {
	case a := <-s.assigned:
		if a.Role != wire.Assignment_ROLE_CACHER {
			return fmt.Errorf("the server assigned the role %s: %s", a.Role, a.Message)
		}
		s.box.Open(synthetic, a.Term, a.Marks)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	d := &wire.Declare{}
	for _, r := range corpus.Kinds {
		d.Feeds = append(d.Feeds, &wire.DeclaredFeed{Feed: wire.FromFeed(vedette.Feed{Kind: r.Kind}), Version: r.Version,
			Plural: r.Plural, Singular: r.Singular, Namespaced: r.Namespaced})
	}
	raw, err := wire.EncodeStep(&wire.Record_Declare{Declare: d})
	if err != nil {
		return err
	}
	return s.box.Put(ctx, outbox.Change{Account: synthetic, Priority: outbox.Control, Key: "declare", Record: raw})
}

// send sends objects and waits until all are acknowledged.
func (s *agentSender) send(ctx context.Context, objects []vedette.Object) (time.Duration, error) {
	changes := make([]outbox.Change, len(objects))
	for i, o := range objects {
		changes[i] = outbox.Change{Account: synthetic, Feed: vedette.Feed{Kind: o.Kind}, Priority: outbox.Bulk, Key: o.Namespace + "/" + o.Name,
			Record: wire.EncodeUpsert(o, false)}
	}
	began := time.Now()
	for _, c := range changes {
		if err := s.box.Put(ctx, c); err != nil {
			return 0, err
		}
	}
	err := await(ctx, "all to be acknowledged", time.Millisecond, func() (bool, error) { return s.box.Used() == 0, nil })
	return time.Since(began), err
}
