package scale

import (
	"context"
	"database/sql"
	"net/url"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/test/databases"
)

// observer is the role by which the test reads the database. What it does counts as nobody's.
const observer = "observer"

// settleTime is after which time PostgreSQL has added to its statistics what idle connections have done.
const settleTime = 11 * time.Second

// database is a PostgreSQL server that counts what is done in it.
type database struct {
	t   testing.TB
	url string // for servers
	db  *sql.DB
}

func newDatabase(t testing.TB) *database {
	t.Helper()
	server := databases.StartPostgreSQL(t, databases.Options{Durable: *durable, Settings: []string{"shared_preload_libraries=pg_stat_statements",
		"pg_stat_statements.max=20000", "track_io_timing=off"}})
	d := &database{t: t, url: server.URL}
	admin := d.open(server.URL)
	d.exec(admin, "CREATE EXTENSION pg_stat_statements")
	d.exec(admin, "CREATE ROLE "+observer+" SUPERUSER LOGIN")
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(observer)
	d.db = d.open(u.String())
	return d
}

func (d *database) open(dsn string) *sql.DB {
	d.t.Helper()
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = db.Close() }) // the server ends too
	return db
}

func (d *database) exec(db *sql.DB, statement string) {
	d.t.Helper()
	if _, err := db.ExecContext(d.t.Context(), statement); err != nil {
		d.t.Fatal(err)
	}
}

// query runs a query with one row.
func (d *database) query(statement string, args []any, into ...any) {
	d.t.Helper()
	if err := d.db.QueryRowContext(d.t.Context(), statement, args...).Scan(into...); err != nil {
		d.t.Fatal(err)
	}
}

// load is what was done in the database up to a time.
type load struct {
	at         time.Time
	statements int64
	written    int64   // rows that were inserted, updated and deleted
	busy       float64 // milliseconds in which statements were executed
}

// isWrite matches statements whose rows were written. SELECT … FOR UPDATE has the word, too.
const isWrite = `query ~* '\m(insert into|update|delete from)\M' AND query !~* '^\s*select'`

func (d *database) load() load {
	d.t.Helper()
	l := load{at: time.Now()}
	d.query(`SELECT COALESCE(sum(calls), 0)::bigint, COALESCE(sum(rows) FILTER (WHERE `+isWrite+`), 0)::bigint, COALESCE(sum(total_exec_time), 0)
		FROM pg_stat_statements WHERE userid <> (SELECT oid FROM pg_roles WHERE rolname = $1)`, []any{observer}, &l.statements, &l.written, &l.busy)
	return l
}

// rate is a load per second.
type rate struct{ statements, written, busy float64 }

func (l load) since(earlier load) rate {
	seconds := l.at.Sub(earlier.at).Seconds()
	return rate{float64(l.statements-earlier.statements) / seconds, float64(l.written-earlier.written) / seconds, (l.busy - earlier.busy) / seconds}
}

// sampleLoads takes a load each second until stop is called, which returns them.
func (d *database) sampleLoads() (stop func() []load) {
	all := []load{d.load()}
	ctx, cancel := context.WithCancel(d.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				all = append(all, d.load())
			}
		}
	}()
	return func() []load { cancel(); <-ended; return all }
}

// tableUse is how many rows of a table were read and written.
type tableUse struct{ read, written int64 }

// tables returns what each table was used for. What connections have done within settleTime may be missing.
func (d *database) tables() map[string]tableUse {
	d.t.Helper()
	rows, err := d.db.QueryContext(d.t.Context(), `SELECT relname, seq_tup_read + COALESCE(idx_tup_fetch, 0), n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_user_tables`)
	if err != nil {
		d.t.Fatal(err)
	}
	defer rows.Close()
	all := map[string]tableUse{}
	for rows.Next() {
		var name string
		var u tableUse
		if err := rows.Scan(&name, &u.read, &u.written); err != nil {
			d.t.Fatal(err)
		}
		all[name] = u
	}
	if err := rows.Err(); err != nil {
		d.t.Fatal(err)
	}
	return all
}

// difference returns what has changed since an earlier result, without what is 0.
func difference(later, earlier map[string]tableUse) map[string]tableUse {
	changed := map[string]tableUse{}
	for name, u := range later {
		before := earlier[name]
		if u != before {
			changed[name] = tableUse{u.read - before.read, u.written - before.written}
		}
	}
	return changed
}

// size returns the bytes of the database, with indexes.
func (d *database) size() (bytes int64) {
	d.t.Helper()
	d.query(`SELECT pg_database_size(current_database())`, nil, &bytes)
	return bytes
}

// accountsOf returns the accounts whose agents are connected to a server.
func (d *database) accountsOf(server vedette.ServerID) (names []vedette.AccountName) {
	d.t.Helper()
	rows, err := d.db.QueryContext(d.t.Context(), `SELECT name FROM accounts WHERE server = $1 ORDER BY name`, string(server))
	if err != nil {
		d.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name vedette.AccountName
		if err := rows.Scan(&name); err != nil {
			d.t.Fatal(err)
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		d.t.Fatal(err)
	}
	return names
}

// liveAccounts returns how many accounts have a cacher, which is not at a server, and only live feeds.
func (d *database) liveAccounts(except vedette.ServerID) (n int) {
	d.t.Helper()
	d.query(`SELECT count(*) FROM accounts a WHERE a.name IS NOT NULL AND a.holder <> '' AND a.server <> $1
		AND (SELECT count(*) FROM feeds f WHERE f.account_id = a.id AND f.state = 'live' AND a.resumed_term <> a.term) = $2`, []any{string(except), len(kinds)}, &n)
	return n
}

// followers returns how many accounts follow the freshness of their servers, and have been synchronized for the first time: nothing of that
// is written again while nothing changes.
func (d *database) followers() (n int) {
	d.t.Helper()
	d.query(`SELECT count(*) FROM freshness fr JOIN accounts a ON a.name = fr.id AND a.term = fr.term WHERE fr.followed = fr.term AND a.complete > 0`, nil, &n)
	return n
}

// resetStatements makes statements return what is executed from now on. Loads before and after have no difference.
func (d *database) resetStatements() {
	d.t.Helper()
	d.query(`SELECT pg_stat_statements_reset()`, nil, new(any))
}

// statements returns the statements that match a regular expression and were executed most often, with how often.
func (d *database) statements(pattern string, n int) (lines []string) {
	d.t.Helper()
	rows, err := d.db.QueryContext(d.t.Context(), `SELECT format('%8s calls %8s rows %10s ms  %s', calls, rows, round(total_exec_time), left(regexp_replace(query, '\s+', ' ', 'g'), 250))
		FROM pg_stat_statements WHERE userid <> (SELECT oid FROM pg_roles WHERE rolname = $1) AND query ~* $2 ORDER BY calls DESC LIMIT $3`, observer, pattern, n)
	if err != nil {
		d.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			d.t.Fatal(err)
		}
		lines = append(lines, line)
	}
	if err := rows.Err(); err != nil {
		d.t.Fatal(err)
	}
	return lines
}
