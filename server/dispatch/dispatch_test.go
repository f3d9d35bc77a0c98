package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/roster"
	"github.com/vedette-io/vedette/server/store"
)

// stage is a dispatch with all that surrounds it, and a log of what happened.
type stage struct {
	*Dispatch
	t *testing.T

	mu      sync.Mutex
	lines   []string
	holders map[vedette.AccountName]*roster.Member
	rows    map[vedette.OperationID]store.OperationRow
	down    bool // the database
	seated  func()
	hangs   bool // the database, until it is asked no more
	hurried int  // what commits to prod make way for
	uids    map[vedette.Key]string
	slow    time.Duration // to tell a uid
}

func onStage(t *testing.T, test func(s *stage)) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{t: t, holders: map[vedette.AccountName]*roster.Member{"prod": nil}, rows: map[vedette.OperationID]store.OperationRow{}}
		s.Dispatch = New(Config{Server: "s1"}, s, s, s, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		test(s)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func (s *stage) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

// heard returns what was said since the last call, once nothing moves any more.
func (s *stage) heard() string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := strings.Join(s.lines, "\n")
	s.lines = nil
	return lines
}

func (s *stage) want(lines ...string) {
	s.t.Helper()
	if got, want := s.heard(), strings.Join(lines, "\n"); got != want {
		s.t.Errorf("what happened:\n%s\nwhat was due:\n%s", got, want)
	}
}

// The stage is the seats, the book and the hub.

func (s *stage) Holder(account vedette.AccountName) (*roster.Member, vedette.Term) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holders[account], 1
}

func (s *stage) OnSeated(f func()) { s.seated = f }

func (s *stage) Account(_ context.Context, name vedette.AccountName) (store.AccountRow, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.holders[name]; !ok {
		return store.AccountRow{}, store.ErrNoAccount
	}
	return store.AccountRow{}, nil
}

func (s *stage) BeginOperation(ctx context.Context, row store.OperationRow) error {
	if err := s.database(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	_, known := s.rows[row.ID]
	s.mu.Unlock()
	if known {
		return vedette.Errorf(vedette.Conflict, "the operation %s was accepted before", row.ID)
	}
	s.say("noted %s %s %s", row.ID, row.Verb, row.Target)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows[row.ID] = row
	return nil
}

func (s *stage) EndOperations(ctx context.Context, rows []store.OperationRow) error {
	if err := s.database(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, row := range rows {
		if strings.HasPrefix(string(row.ID), "bad") {
			return vedette.Errorf(vedette.Invalid, "the database never takes this")
		}
	}
	for _, row := range rows {
		s.rows[row.ID] = row
	}
	return nil
}

// database is an error while it is away.
func (s *stage) database(ctx context.Context) error {
	s.mu.Lock()
	down, hangs := s.down, s.hangs
	s.mu.Unlock()
	if hangs {
		<-ctx.Done()
	}
	if down || hangs {
		return vedette.Errorf(vedette.Unavailable, "the database is away")
	}
	return nil
}

func (s *stage) setDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

func (s *stage) row(id vedette.OperationID) store.OperationRow {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rows[id]
}

func (s *stage) ExpireOperations(_ context.Context, due time.Time, message string, at time.Time) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for id, row := range s.rows {
		if row.State == store.Pending && row.Deadline.Before(due) {
			row.State, row.Message, row.Ended = vedette.Lost, message, at
			s.rows[id] = row
			n++
		}
	}
	return n, nil
}

func (s *stage) MarkOperationsLost(context.Context, vedette.ServerID, string, time.Time) (int, error) {
	return 0, nil
}
func (s *stage) PurgeOperations(context.Context, time.Time, int) (int, error) { return 0, nil }

func (s *stage) WriteThrough(ctx context.Context, account vedette.AccountName, _ vedette.Term, o vedette.Object, end *store.OperationRow) ([]store.Change, bool, error) {
	s.say("stored %s at %s", o.Key, o.ResourceVersion)
	err := s.EndOperations(ctx, []store.OperationRow{*end})
	return nil, err == nil, err
}

func (s *stage) RemoveThrough(ctx context.Context, account vedette.AccountName, _ vedette.Term, key vedette.Key, uid string, end *store.OperationRow) ([]store.Change, bool, error) {
	s.say("removed %s %s", key, uid)
	if end == nil {
		return nil, false, nil
	}
	err := s.EndOperations(ctx, []store.OperationRow{*end})
	return nil, err == nil, err
}

func (s *stage) Prioritize(vedette.AccountName) (end func()) {
	s.hurry(1)
	return func() { s.hurry(-1) }
}

func (s *stage) hurry(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hurried += n
}

func (s *stage) Resources(ctx context.Context, _ ...vedette.AccountName) ([]vedette.Resource, error) {
	if err := s.database(ctx); err != nil {
		return nil, err
	}
	return []vedette.Resource{{Kind: deployments, Version: "v1", Plural: "deployments", Namespaced: true}}, nil
}

func (s *stage) UID(ctx context.Context, _ vedette.AccountName, key vedette.Key) (string, error) {
	if s.slow > 0 {
		time.Sleep(s.slow)
	}
	return s.uids[key], s.database(ctx)
}

func (s *stage) Publish([]store.Change) {}

// agent is a connected agent's process.
type agent struct {
	stage *stage
	name  string
	visit *Visit
}

func (a *agent) Send(op vedette.Operation) {
	if d, ok := op.Args.(vedette.DeleteArgs); ok {
		a.stage.say("%s is sent %s%s", a.name, op.ID, notesOn(d))
		return
	}
	a.stage.say("%s is sent %s", a.name, op.ID)
}

func notesOn(d vedette.DeleteArgs) (notes string) {
	if d.KnownUID != "" {
		notes += ", of uid " + d.KnownUID
	}
	if d.OnlyKnown {
		notes += " and no other"
	}
	if d.MissingOK {
		notes += ", which may be gone"
	}
	return notes
}

func (a *agent) Cancel(id vedette.OperationID) { a.stage.say("%s may drop %s", a.name, id) }
func (a *agent) Forget(id vedette.OperationID) { a.stage.say("%s may forget %s", a.name, id) }
func (a *agent) answers(out vedette.Outcome)   { a.visit.Outcome(out) }
func (a *agent) done(id vedette.OperationID) {
	a.answers(vedette.Outcome{ID: id, State: vedette.Done, Status: 200})
}

// connect brings an agent's process, which serves prod from then on.
func (s *stage) connect(id vedette.AgentID, process string) *agent {
	m := &roster.Member{Agent: roster.Agent{ID: id, Hostname: "host", Version: "1.0"}}
	a := &agent{stage: s, name: string(id) + "/" + process}
	a.visit = s.Attach(m, process, a)
	s.mu.Lock()
	s.holders["prod"] = m
	seated := s.seated
	s.mu.Unlock()
	seated()
	return a
}

func (s *stage) cut(a *agent) {
	s.mu.Lock()
	s.holders["prod"] = nil
	s.mu.Unlock()
	a.visit.Leave()
}

// do begins an operation; its outcome is said.
func (s *stage) do(id vedette.OperationID, args vedette.Args) context.CancelFunc {
	return s.begins(vedette.Operation{ID: id, Account: "prod", Args: args})
}

func (s *stage) doDry(id vedette.OperationID, args vedette.Args) {
	s.begins(vedette.Operation{ID: id, Account: "prod", Args: args, DryRun: true})
}

func (s *stage) begins(op vedette.Operation) context.CancelFunc {
	ctx, cancel := context.WithCancel(s.t.Context())
	go func() {
		out := s.Execute(ctx, op)
		s.say("%s %s %d %s%s", out.ID, out.State, out.Status, out.Message, strings.Join(out.Warnings, ", "))
	}()
	synctest.Wait()
	return cancel
}

var (
	deployments = vedette.Kind{Group: "apps", Name: "Deployment"}

	web     = vedette.Target{Kind: "deployment", Namespace: "shop", Name: "web"}
	scale   = vedette.ScaleArgs{Target: web, Replicas: 3}
	restart = vedette.RestartArgs{Target: web}
	read    = vedette.GetArgs{Target: web}
)

func TestOperation(t *testing.T) {
	onStage(t, func(s *stage) {
		a := s.connect("a", "1")
		s.do("op", scale)
		s.want("noted op scale deployment shop/web", "a/1 is sent op")
		a.answers(vedette.Outcome{ID: "op", State: vedette.Done, Status: 200, CacheObject: &vedette.Object{Key: vedette.Key{Name: "web"}, ResourceVersion: "7"}})
		s.want("a/1 may forget op", "stored  web at 7", "op done 200 ")
		if row := s.row("op"); row.State != vedette.Done || row.Agent != "a" || row.Sent.IsZero() || row.Ended.IsZero() {
			t.Errorf("the history says %+v", row)
		}
		fresh := &vedette.Object{Key: vedette.Key{Name: "web"}, ResourceVersion: "8"}
		s.do("get", read)
		s.heard()
		a.answers(vedette.Outcome{ID: "get", State: vedette.Done, Status: 200, CacheObject: fresh})
		s.want("a/1 may forget get", "get done 200 ")
		s.do("recache", vedette.RecacheArgs{Target: web})
		s.heard()
		a.answers(vedette.Outcome{ID: "recache", State: vedette.Done, Status: 200, CacheObject: fresh})
		s.want("a/1 may forget recache", "stored  web at 8", "recache done 200 ")
		s.do("del", vedette.DeleteArgs{Target: web})
		s.heard()
		a.answers(vedette.Outcome{ID: "del", State: vedette.Done, Status: 200, Keys: []vedette.Key{{Name: "web"}}, UIDs: []string{"u"}})
		s.want("a/1 may forget del", "removed  web u", "del done 200 ")
	})
}

// TestSameIDTwice holds that what is in the history is not sent once more.
func TestSameIDTwice(t *testing.T) {
	onStage(t, func(s *stage) {
		a := s.connect("a", "1")
		s.do("op", restart)
		a.done("op")
		s.heard()
		s.do("op", restart)
		s.want("op failed 409 the operation op was accepted before")
	})
}

func TestNobodyServes(t *testing.T) {
	onStage(t, func(s *stage) {
		s.do("op", scale)
		s.want("noted op scale deployment shop/web")
		time.Sleep(11 * time.Second)
		if got := s.heard(); !strings.HasPrefix(got, "op failed 503 no agent serves account prod: none has connected within 10s, and nothing was done") {
			t.Error(got)
		}
		out := s.Execute(s.t.Context(), vedette.Operation{Account: "prdo", Args: read})
		if out.Status != 404 || !strings.Contains(out.Message, "no account prdo") {
			t.Errorf("an account that is not there: %+v", out)
		}
		s.do("later", read)
		time.Sleep(5 * time.Second)
		a := s.connect("a", "1")
		s.want("a/1 is sent later")
		a.done("later")
		s.want("a/1 may forget later", "later done 200 ")
	})
}

// A connection is lost with an operation under way.
func TestSentAgain(t *testing.T) {
	tests := []struct {
		why   string
		args  vedette.Args
		agent vedette.AgentID
		run   string // the process that comes next
		want  string // said then
	}{
		{"the process that has it knows what it did", restart, "a", "1", "a/1 is sent op"},
		{"twice is the same as once", scale, "a", "2", "a/2 is sent op"},
		{"what was deleted before is gone", vedette.DeleteArgs{Target: web}, "a", "2", "a/2 is sent op, which may be gone"},
		{"the process that has it knows that it deleted", vedette.DeleteArgs{Target: web}, "a", "1", "a/1 is sent op"},
		{"reading does no harm", read, "b", "9", "b/9 is sent op"},
		{"a restart would roll out twice", restart, "a", "2", "op lost 504 it is unknown whether this took effect"},
		{"a standby can't know either", restart, "b", "9", "op lost 504 it is unknown whether this took effect"},
	}
	for _, tt := range tests {
		t.Run(tt.why, func(t *testing.T) {
			onStage(t, func(s *stage) {
				a := s.connect("a", "1")
				s.do("op", tt.args)
				s.cut(a)
				s.heard()
				time.Sleep(3 * time.Second)
				next := s.connect(tt.agent, tt.run)
				if got := s.heard(); !strings.HasPrefix(got, tt.want) {
					t.Errorf("got %s\nwant %s", got, tt.want)
				}
				next.done("op")
			})
		})
	}
}

// The outcome of what was sent over the lost connection comes over the new one,
// before the operation is sent again.
func TestOutcomeComesLater(t *testing.T) {
	onStage(t, func(s *stage) {
		a := s.connect("a", "1")
		s.do("op", restart)
		s.cut(a)
		s.heard()
		b := &agent{stage: s, name: "a/1"}
		b.visit = s.Attach(&roster.Member{Agent: roster.Agent{ID: "a"}}, "1", b) // not registered yet: it holds no account
		b.done("op")
		s.want("a/1 may forget op", "op done 200 ")
	})
}

func TestDeadlines(t *testing.T) {
	onStage(t, func(s *stage) {
		a := s.connect("a", "1")
		s.do("w", scale)
		s.do("r", read)
		s.heard()
		time.Sleep(32 * time.Second)
		if got := s.heard(); got != "" {
			t.Errorf("before the grace is over: %s", got)
		}
		time.Sleep(2 * time.Second)
		got := strings.Split(s.heard(), "\n")
		slices.Sort(got)
		for i, want := range []string{"a/1 may drop r", "a/1 may drop w", "r failed 504 agent a did not answer by the deadline",
			"w lost 504 it is unknown whether this took effect"} {
			if i >= len(got) || !strings.HasPrefix(got[i], want) {
				t.Fatalf("got %q, want %q", got, want)
			}
		}
		a.done("w")
		s.want("a/1 may forget w")
	})
}

func TestCallerLeaves(t *testing.T) {
	onStage(t, func(s *stage) {
		a := s.connect("a", "1")
		leave := s.do("op", scale)
		s.heard()
		leave()
		if got := s.heard(); !strings.HasPrefix(got, "op lost 504 the caller left before the operation ended; it goes on") {
			t.Error(got)
		}
		a.done("op")
		if row := s.row("op"); row.State != vedette.Done {
			t.Errorf("the history says %+v", row)
		}
	})
}

func TestServerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{t: t, holders: map[vedette.AccountName]*roster.Member{}, rows: map[vedette.OperationID]store.OperationRow{}}
		s.Dispatch = New(Config{Server: "s1"}, s, s, s, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		s.connect("a", "1")
		s.do("op", scale)
		s.heard()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got := s.heard(); !strings.Contains(got, "op lost 504") || !strings.Contains(got, "the server is going away") {
			t.Error(got)
		}
		if row := s.row("op"); row.State != vedette.Lost {
			t.Errorf("the history says %+v", row)
		}
	})
}

func TestDatabaseAway(t *testing.T) {
	onStage(t, func(s *stage) {
		s.connect("a", "1")
		s.setDown(true)
		s.do("op", scale)
		if got := s.heard(); !strings.HasPrefix(got, "op failed 503 the server could not note the operation") {
			t.Error(got)
		}
		s.do("r", read) // reading needs no note
		s.want("a/1 is sent r")
	})
}

// crowd answers everything with the operation's own target, after a while and in
// any order.
type crowd struct {
	name  string
	visit *Visit
}

func (c *crowd) Cancel(vedette.OperationID) {}
func (c *crowd) Forget(vedette.OperationID) {}
func (c *crowd) Send(op vedette.Operation) {
	target := op.Args.(vedette.ScaleArgs).Target
	time.AfterFunc(rand.N(time.Second), func() {
		c.visit.Outcome(vedette.Outcome{ID: op.ID, State: vedette.Done, Message: c.name + " " + string(op.Account) + " " + target.Name})
	})
}

// TestNoMixUp sends 1,000 operations at once over 20 agents.
func TestNoMixUp(t *testing.T) {
	onStage(t, func(s *stage) {
		for i := range 20 {
			name := fmt.Sprint("agent-", i)
			m := &roster.Member{Agent: roster.Agent{ID: vedette.AgentID(name)}}
			c := &crowd{name: name}
			c.visit = s.Attach(m, "1", c)
			s.holders[vedette.AccountName(fmt.Sprint("account-", i))] = m
		}
		var all sync.WaitGroup
		for i := range 1000 {
			all.Go(func() {
				account, object := fmt.Sprint("account-", i%20), fmt.Sprint("object-", i)
				out := s.Execute(s.t.Context(), vedette.Operation{Account: vedette.AccountName(account), Args: vedette.ScaleArgs{Target: vedette.Target{Kind: "deployment", Name: object}}})
				if want := fmt.Sprintf("agent-%d %s %s", i%20, account, object); out.Message != want {
					t.Errorf("got %q, want %q", out.Message, want)
				}
			})
		}
		all.Wait()
	})
}

// Another server accepted an operation and never came back. What it is late for
// alone does not end it: its server may still be noting the outcome.
func TestOverdueOfGoneServer(t *testing.T) {
	onStage(t, func(s *stage) {
		s.mu.Lock()
		s.rows["theirs"] = store.OperationRow{ID: "theirs", Server: "s2", State: store.Pending, Deadline: time.Now().Add(30 * time.Second)}
		s.mu.Unlock()
		time.Sleep(3 * time.Minute)
		if row := s.row("theirs"); row.State != store.Pending {
			t.Errorf("too early: %+v", row)
		}
		time.Sleep(5 * time.Minute)
		if row := s.row("theirs"); row.State != vedette.Lost || !strings.Contains(row.Message, "the server that accepted it ended") {
			t.Errorf("the history says %+v", row)
		}
	})
}
