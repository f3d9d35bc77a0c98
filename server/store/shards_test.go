package store_test

import (
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/history"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/storetest"
	"github.com/vedette-io/vedette/server/store/storetest/suite"
	"github.com/vedette-io/vedette/test/databases"
)

// TestSeveralSQLite runs the suite on three databases, over which accounts are spread. Without -shards it leaves out what is about one account, so about one
// database.
func TestSeveralSQLite(t *testing.T) {
	groups := []string{"accounts", "accounts of several servers", "many accounts at once", "oracle", "reads", "names", "attributes", "search", "inventory", "operations"}
	if *allOfShards {
		groups = nil
	}
	suite.Run(t, func(t *testing.T) *store.Store {
		return storetest.OpenConfig(t, sqldb.Config{URL: sqliteURL(t), Shards: []sqldb.Shard{{Name: "b", URL: sqliteURL(t)}, {Name: "c", URL: sqliteURL(t)}}})
	}, groups...)
}

// allOfShards makes the whole suite run on several databases, also of servers, which takes some ten minutes (make shards).
var allOfShards = flag.Bool("shards", false, "run the whole suite on several SQLite, PostgreSQL and MariaDB databases")

// TestSeveralPostgreSQL runs the suite on two databases of one kind.
func TestSeveralPostgreSQL(t *testing.T) {
	if !*allOfShards {
		t.Skip("only with -shards (make shards); TestPostgreSQLAndMariaDB runs a part of it")
	}
	suite.Run(t, func(t *testing.T) *store.Store {
		return storetest.OpenConfig(t, sqldb.Config{URL: databases.PostgreSQL(t), Shards: []sqldb.Shard{{Name: "b", URL: databases.PostgreSQL(t)}}})
	})
}

// TestPostgreSQLAndMariaDB runs the suite on databases of two kinds. Without -shards it leaves out what differs least between databases.
func TestPostgreSQLAndMariaDB(t *testing.T) {
	groups := []string{"accounts", "many accounts at once", "held marks"}
	if *allOfShards {
		groups = nil
	}
	suite.Run(t, func(t *testing.T) *store.Store {
		return storetest.OpenConfig(t, sqldb.Config{URL: databases.PostgreSQL(t), Shards: []sqldb.Shard{{Name: "b", URL: databases.MariaDB(t)}}})
	}, groups...)
}

// first are the methods that are of the first database, and why. All others of the parts are methods of Store, too.
var firstOnly = map[string]string{
	"Ping CheckWritable WriteProblem DiskSpace": "a server is ready if the first database is; Shards has the others",
	"CheckLease": "who loses another database has lost the first one before",
	"PoolStats HasAnswered AbandonLease Name":                                                                                    "Shards has the others",
	"SharingServers EvictServer SetServerState ServerToken IsShared KnowsWrites IsOnlyWriter":                                    "servers are in the first database",
	"EvictProcess SchemaVersion MigrateEmpty Remains RaiseTerm KindOf AddNames End":                                              "store itself calls them for one database",
	"Write ExecWrite WriteLowPriority QueryEach QueryOne QueryEachAnywhere QueryOneAnywhere Purge Prepare WithTimeout WrapError": "the parts call them, and tests",
	"CreateTask SaveTask Task RunningTasks TaskOwners TouchTasks AbandonedTasks AcquireTask PurgeTasks":                          "tasks are in the first database",
	"SetUpstreamAnswer ConfirmUpstreamAnswer UpstreamAnswer":                                                                     "they are of no account",
	"SetSharing IsCurrent OnPublishAll OnVisibility PublishOutcome PublishOther PublishAll Refresh PublishUncertain Settle ChangedAccounts ChangeMark " +
		"ApplicationVersion NamespaceVersion AccountsVersion NewPart": "the versions of the first database are those of all",
}

// TestEachMethodAsksTheRightDatabases finds methods of the parts that Store would leave to the first database.
func TestEachMethodAsksTheRightDatabases(t *testing.T) {
	known := map[string]bool{}
	for names := range firstOnly {
		for _, name := range strings.Fields(names) {
			known[name] = true
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string]bool{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
				if star, ok := f.Recv.List[0].Type.(*ast.StarExpr); ok && star.X.(*ast.Ident).Name == "Store" {
					declared[f.Name.Name] = true
				}
			}
		}
	}
	for method := range reflect.TypeFor[*store.Store]().Methods() {
		if declared[method.Name] == known[method.Name] {
			t.Errorf("%s: it must either be a method of Store itself, or have a reason in firstOnly", method.Name)
		}
	}
}

// severalConfig is of three databases.
func severalConfig(t *testing.T) sqldb.Config {
	return sqldb.Config{URL: sqliteURL(t), Shards: []sqldb.Shard{{Name: "b", URL: sqliteURL(t)}, {Name: "c", URL: sqliteURL(t)}}}
}

// accountsOf returns how many accounts each database has, the first at first.
func accountsOf(t *testing.T, s *store.Store) []int {
	t.Helper()
	names, err := s.Registry.AccountNames(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	counts := []int{len(names)}
	for _, shard := range s.Shards() {
		n := 0
		if err := shard.QueryOne(t.Context(), sqldb.ScanInto(&n), sqldb.Named("test", `SELECT COUNT(*) FROM accounts WHERE name IS NOT NULL`)); err != nil {
			t.Fatal(err)
		}
		counts = append(counts, n)
	}
	return counts
}

// randomFleet fills a store with accounts and operations.
func randomFleet(t *testing.T, s *store.Store, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // not secret
	start := time.Now().Add(-time.Hour).Truncate(time.Second)
	for i := range 7 {
		account := vedette.AccountName(fmt.Sprintf("account-%d", random.IntN(1000)*10+i))
		w := storetest.NewWriter(t, s, account)
		var objects []vedette.Object
		for range random.IntN(60) {
			kind := []vedette.Kind{storetest.Pods, storetest.Services, storetest.Deployments}[random.IntN(3)]
			o := storetest.Object(kind, fmt.Sprint("n", random.IntN(3)), fmt.Sprint("o", random.IntN(40)), fmt.Sprint(random.IntN(100)+1))
			o.Body = []byte(`{"a":"` + strings.Repeat("x", random.IntN(300)) + `"}`)
			objects = append(objects, o)
		}
		slices.SortFunc(objects, func(a, b vedette.Object) int { return strings.Compare(a.Key.String(), b.Key.String()) })
		w.Put(slices.CompactFunc(objects, func(a, b vedette.Object) bool { return a.Key == b.Key })...)
		for n := range random.IntN(8) {
			if err := s.BeginOperation(t.Context(), history.Operation{ID: vedette.OperationID(fmt.Sprintf("01HZZZZZZZZZZZZZZZ%04d%04d", i, n)), Account: account, Verb: "apply",
				Accepted: start.Add(time.Duration(random.IntN(20)) * time.Second), Deadline: start}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestSeveralDatabasesAnswerAsOne compares what one database answers with what several do, of the same accounts.
func TestSeveralDatabasesAnswerAsOne(t *testing.T) {
	t.Parallel()
	seeds := uint64(2)
	if *allOfShards {
		seeds = 10
	}
	for seed := range seeds {
		one, several := storetest.Open(t, sqliteURL(t)), storetest.OpenConfig(t, severalConfig(t))
		randomFleet(t, one, seed)
		randomFleet(t, several, seed)
		if counts := accountsOf(t, several); slices.Min(counts) < 2 || slices.Max(counts) > 3 {
			t.Errorf("got %v accounts, want them spread evenly", counts)
		}
		for name, ask := range questions(t, one) {
			if got, want := ask(several), ask(one); !reflect.DeepEqual(got, want) {
				t.Errorf("seed %d, %s:\n got %v\nwant %v", seed, name, got, want)
			}
		}
	}
}

// questions returns what to ask of all accounts, and of some.
func questions(t *testing.T, s *store.Store) map[string]func(*store.Store) any {
	names, err := s.AccountNames(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	some := []vedette.AccountName{names[0], names[2], names[5], "missing"}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	all := map[string]func(*store.Store) any{
		"accounts": func(s *store.Store) any { names, err := s.AccountNames(t.Context()); must(err); return names },
		"accounts by name": func(s *store.Store) any {
			rows, err := s.AccountsNamed(t.Context(), some...)
			must(err)
			return fmt.Sprint(len(rows), rows[0].Name, rows[2].Name, rows[2].Cluster)
		},
		"syncs": func(s *store.Store) any { syncs, err := s.AccountSyncs(t.Context()); must(err); return syncs },
		"sizes": func(s *store.Store) any { sizes, err := s.AccountSizes(t.Context()); must(err); return sizes },
		"assigned": func(s *store.Store) any {
			rows, err := s.Assigned(t.Context(), some)
			must(err)
			slices.SortFunc(rows, func(a, b registry.Assigned) int { return strings.Compare(string(a.Account), string(b.Account)) })
			return rows
		},
		"feeds": func(s *store.Store) any {
			feeds, err := s.Feeds(t.Context())
			must(err)
			var text []string
			for _, f := range feeds {
				text = append(text, fmt.Sprint(f.Account, f.Feed, f.State, f.Objects))
			}
			return text
		},
		"resources": func(s *store.Store) any { r, err := s.Resources(t.Context()); must(err); return r },
		"counts":    func(s *store.Store) any { c, err := s.FeedCounts(t.Context()); must(err); return c },
		"objects":   func(s *store.Store) any { c, err := s.ObjectCounts(t.Context(), some...); must(err); return c },
		"inventory": func(s *store.Store) any {
			v, err := s.Inventory(t.Context())
			must(err)
			return fmt.Sprint(v.Applications())
		},
		"an application": func(s *store.Store) any {
			v, err := s.Inventory(t.Context())
			must(err)
			return v.Application("app-of-o7")
		},
		"stats": func(s *store.Store) any {
			st, err := s.Stats(t.Context())
			must(err)
			return []int64{st.Accounts, st.Objects}
		},
		"history size": func(s *store.Store) any {
			size, err := s.HistorySize(t.Context())
			must(err)
			return fmt.Sprint(size.Entries, size.Bytes)
		},
		"attributes": func(s *store.Store) any {
			rows, err := s.ApplicationAttributes(t.Context(), "app-of-o7", nil)
			must(err)
			var text []string
			for _, r := range rows {
				text = append(text, fmt.Sprint(r.Account, r.Key, r.UID, r.Moniker))
			}
			slices.Sort(text)
			return text
		},
	}
	for _, q := range []read.Query{{}, {Limit: 1}, {Limit: 7}, {Limit: 7, Accounts: some}, {Namespace: "n1", Limit: 10}, {Name: "o7"}, {Application: "app-of-o7", Limit: 2},
		{Limit: 20, Bodies: true, Bytes: 1500}, {Bodies: true, Bytes: 1}, {Kinds: []vedette.Kind{storetest.Pods}, Limit: 3}, {Selector: "app=o7"}} {
		all[fmt.Sprintf("objects %+v", q)] = func(s *store.Store) any { return storetest.RowNames(storetest.QueryAll(t, s, q)) }
	}
	for _, limit := range []int{1, 3, 100} {
		all[fmt.Sprintf("operations by %d", limit)] = func(s *store.Store) any { return allOperations(t, s, limit) }
		all[fmt.Sprintf("search by %d", limit)] = func(s *store.Store) any { return allFound(t, s, limit) }
	}
	return all
}

func allOperations(t *testing.T, s *store.Store, limit int) (ids []vedette.OperationID) {
	for q := (history.Query{Limit: limit}); ; {
		page, next, err := s.Operations(t.Context(), q)
		if err != nil || len(page) > limit {
			t.Fatal(len(page), err)
		}
		for _, o := range page {
			ids = append(ids, o.ID)
		}
		if q.After = next; next == "" {
			return ids
		}
	}
}

// allFound returns what pages have together, sorted, because the order is not defined.
func allFound(t *testing.T, s *store.Store, limit int) (found []string) {
	q := read.SearchQuery{Text: "o", KindName: func(k vedette.Kind) string { return k.Name }, Limit: limit}
	for {
		page, err := s.Search(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page {
			found = append(found, fmt.Sprint(r.Account, r.Key))
		}
		if len(page) < limit {
			break
		}
		q.Offset += int64(limit)
	}
	slices.Sort(found)
	if n, err := s.CountSearch(t.Context(), q); err != nil || n != int64(len(found)) {
		t.Errorf("got %d objects, and a count of %d, %v", len(found), n, err)
	}
	return slices.Compact(found)
}

// TestAccountMovesByRemovingIt removes an account and registers it again, when another database has fewer accounts.
func TestAccountMovesByRemovingIt(t *testing.T) {
	t.Parallel()
	s := storetest.OpenConfig(t, severalConfig(t))
	first := storetest.NewWriter(t, s, "a") // in the first database
	for _, name := range []vedette.AccountName{"b", "c", "d", "e", "f"} {
		storetest.Register(t, s, name)
	}
	for _, name := range []vedette.AccountName{"b", "e"} {
		if err := s.RemoveAccount(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	before := accountsOf(t, s)
	if err := s.RemoveAccount(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if err := s.RemoveAccount(t.Context(), "a"); !errors.Is(err, registry.ErrNoAccount) {
		t.Errorf("got %v, want %v", err, registry.ErrNoAccount)
	}
	moved := storetest.NewWriter(t, s, "a")
	if after := accountsOf(t, s); fmt.Sprint(before, after) != "[2 0 2] [1 1 2]" {
		t.Errorf("got %v accounts, then %v, want that one has moved", before, after)
	}
	if moved.Term <= first.Term {
		t.Errorf("got term %d after %d, want a later one", moved.Term, first.Term)
	}
	if _, err := s.Commit(t.Context(), commit.Batch{Account: "a", Term: first.Term, Upserts: []vedette.Object{storetest.Object(storetest.Pods, "n", "p", "1")}}); !errors.Is(err, registry.ErrTerm) {
		t.Errorf("the former writer: got %v, want %v", err, registry.ErrTerm)
	}
	moved.Put(storetest.Object(storetest.Pods, "n", "p", "1"))
	if rows := storetest.QueryAll(t, s, read.Query{Accounts: []vedette.AccountName{"a"}}); len(rows) != 1 {
		t.Errorf("got %v, want the object of the account", storetest.RowNames(rows))
	}
}

// TestRetiredAccountStaysInItsDatabase retires an account, whose data waits for it.
func TestRetiredAccountStaysInItsDatabase(t *testing.T) {
	t.Parallel()
	s := storetest.OpenConfig(t, severalConfig(t))
	storetest.Register(t, s, "a")
	w := storetest.NewWriter(t, s, "b")
	w.Put(storetest.Object(storetest.Pods, "n", "p", "1"))
	if found, err := s.RetireAccount(t.Context(), "b"); err != nil || !found {
		t.Fatal(found, err)
	}
	storetest.Register(t, s, "b")
	if rows := storetest.QueryAll(t, s, read.Query{Accounts: []vedette.AccountName{"b"}}); len(rows) != 1 {
		t.Errorf("got %v, want the object", storetest.RowNames(rows))
	}
	if counts := accountsOf(t, s); fmt.Sprint(counts) != "[1 1 0]" {
		t.Errorf("got %v accounts, want that it is where it was", counts)
	}
}

// TestSimilarAccountsOfOtherDatabases registers a name that other services take for one in another database.
func TestSimilarAccountsOfOtherDatabases(t *testing.T) {
	t.Parallel()
	s := storetest.OpenConfig(t, severalConfig(t))
	storetest.Register(t, s, "prod")
	_, err := s.Register(t.Context(), vedette.Account{Name: "PROD", Cluster: vedette.Cluster{UID: "x"}})
	if vedette.KindOf(err) != vedette.Conflict || !strings.Contains(err.Error(), "too similar") {
		t.Errorf("got %v, want a conflict", err)
	}
	storetest.Register(t, s, "other")
	if _, err := s.Register(t.Context(), vedette.Account{Name: "other", Cluster: vedette.Cluster{UID: "x"}}); vedette.KindOf(err) != vedette.Conflict {
		t.Errorf("another cluster: got %v, want a conflict", err)
	}
}

// TestOperationIDsAreOfOneAccount begins two operations of one id, on accounts in two databases.
func TestOperationIDsAreOfOneAccount(t *testing.T) {
	t.Parallel()
	s := storetest.OpenConfig(t, severalConfig(t))
	storetest.Register(t, s, "a")
	storetest.Register(t, s, "b")
	o := history.Operation{ID: "01HZZZZZZZZZZZZZZZZZZZZZZZ", Account: "a", Verb: "apply", Accepted: time.Now(), Deadline: time.Now()}
	if err := s.BeginOperation(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	o.Account = "b"
	if err := s.BeginOperation(t.Context(), o); vedette.KindOf(err) != vedette.Conflict {
		t.Errorf("got %v, want a conflict", err)
	}
	if found, err := s.Operation(t.Context(), o.ID); err != nil || found.Account != "a" {
		t.Errorf("got %v, %v, want the first operation", found, err)
	}
	if _, err := s.Operation(t.Context(), "01HZZZZZZZZZZZZZZZZZZZZZZ0"); vedette.KindOf(err) != vedette.NotFound {
		t.Errorf("got %v, want that there is none", err)
	}
}

// TestWrongShards opens a store with databases that do not belong together.
func TestWrongShards(t *testing.T) {
	t.Parallel()
	cfg := severalConfig(t)
	open := func(cfg sqldb.Config) error {
		s, err := store.Open(t.Context(), cfg)
		if err != nil {
			return err
		}
		return s.Close()
	}
	s, err := store.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []vedette.AccountName{"a", "b", "c"} {
		storetest.Register(t, s, name)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	used := sqliteURL(t)
	other := storetest.Open(t, used)
	storetest.Register(t, other, "of-another-installation")
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	b, c := cfg.Shards[0], cfg.Shards[1]
	for want, shards := range map[string][]sqldb.Shard{
		"has 1 accounts of another installation":             {b, c, {Name: "d", URL: used}},
		"is the one of sql.url":                              {b, c, {Name: "d", URL: cfg.URL}},
		"it is the same as b":                                {b, c, {Name: "d", URL: b.URL}},
		"it is known as b":                                   {{Name: "d", URL: b.URL}, c},
		"is another one than before":                         {{Name: "b", URL: sqliteURL(t)}, c},
		"does not name the database c, which has 1 accounts": {b},
	} {
		wrong := cfg
		wrong.Shards = shards
		if err := open(wrong); vedette.KindOf(err) != vedette.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if err := open(sqldb.Config{URL: sqliteURL(t), Shards: []sqldb.Shard{b}}); vedette.KindOf(err) != vedette.Invalid || !strings.Contains(err.Error(), "another installation") {
		t.Errorf("another first database: got %v", err)
	}
	if err := open(sqldb.Config{URL: b.URL, Shards: []sqldb.Shard{{Name: "x", URL: sqliteURL(t)}}}); vedette.KindOf(err) != vedette.Invalid || !strings.Contains(err.Error(), `it is the database "b"`) {
		t.Errorf("a shard as the first: got %v", err)
	}
	s = storetest.OpenConfig(t, cfg) // all is as before
	if counts := accountsOf(t, s); fmt.Sprint(counts) != "[1 1 1]" {
		t.Errorf("got %v accounts", counts)
	}
	if err := s.RemoveAccount(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	cfg.Shards = []sqldb.Shard{b}
	storetest.OpenConfig(t, cfg)
}
