package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/assigner"
	"github.com/vedette-io/vedette/server/assignment"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/history"
	"github.com/vedette-io/vedette/server/store/registry"
)

// scenario is a Dispatcher with fakes around it, and a log of events.
type scenario struct {
	*Dispatcher
	t *testing.T

	mu             sync.Mutex
	lines          []string
	cachers        map[vedette.AccountName]*assigner.Member
	rows           map[vedette.OperationID]history.Operation
	databaseDown   bool // the database
	notifyAssigned func()
	databaseHangs  bool // the database, until it is asked no more
	prioritized    int  // what commits to prod make way for
	uids           map[vedette.Key]string
	uidDelay       time.Duration // to tell a uid
	registered     map[*assigner.Member]vedette.Cluster
	stored         vedette.Cluster // of prod
	pause          time.Duration   // of the process, whenever it looks for the cacher
	purgeDelay     time.Duration   // to purge the history
	freeze         time.Duration   // of the process, when it asks the database next
	endDelay       time.Duration   // to record ends
	elsewhere      bool            // whether another server has stored what is asked for
	elsewhereErr   error
	holder         vedette.AgentID // the agent of another server that has the account
	asked          string          // what of another server was asked for last
}

func runScenario(t *testing.T, test func(s *scenario)) {
	synctest.Test(t, func(t *testing.T) {
		s := &scenario{t: t, cachers: map[vedette.AccountName]*assigner.Member{"prod": nil}, rows: map[vedette.OperationID]history.Operation{},
			registered: map[*assigner.Member]vedette.Cluster{}}
		s.Dispatcher = New(Config{Server: "s1"}, s, s, s, slog.New(slog.DiscardHandler))
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

func (s *scenario) logf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

// takeLog returns the events since the last call, after all goroutines are blocked.
func (s *scenario) takeLog() string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := strings.Join(s.lines, "\n")
	s.lines = nil
	return lines
}

func (s *scenario) expectLog(lines ...string) {
	s.t.Helper()
	if got, want := s.takeLog(), strings.Join(lines, "\n"); got != want {
		s.t.Errorf("got the events\n%s\nwant\n%s", got, want)
	}
}

// scenario implements assignments, operationStore and publisher.

func (s *scenario) Cacher(account vedette.AccountName) (*assigner.Member, vedette.Term) {
	time.Sleep(s.pause)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cachers[account], 1
}

func (s *scenario) OnAssigned(f func()) { s.notifyAssigned = f }

func (s *scenario) Account(_ context.Context, name vedette.AccountName) (registry.Account, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.cachers[name]; !ok {
		return registry.Account{}, registry.ErrNoAccount
	}
	return registry.Account{Account: vedette.Account{Cluster: s.stored}, Holder: s.holder}, nil
}

func (s *scenario) Registered(m *assigner.Member, _ vedette.AccountName) vedette.Cluster {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.registered[m]
}

func (s *scenario) BeginOperation(ctx context.Context, row history.Operation) error {
	if err := s.checkDatabase(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	_, known := s.rows[row.ID]
	s.mu.Unlock()
	if known {
		return vedette.Errorf(vedette.Conflict, "the operation %s was accepted before", row.ID)
	}
	s.logf("recorded %s %s %s", row.ID, row.Verb, row.Target)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows[row.ID] = row
	return nil
}

func (s *scenario) Operation(ctx context.Context, id vedette.OperationID) (history.Operation, error) {
	if err := s.checkDatabase(ctx); err != nil {
		return history.Operation{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	row, ok := s.rows[id]
	if !ok {
		return row, vedette.Errorf(vedette.NotFound, "no operation %s", id)
	}
	return row, nil
}

func (s *scenario) EndOperations(ctx context.Context, rows []history.Operation) error {
	if err := s.checkDatabase(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	delay := s.endDelay
	s.mu.Unlock()
	time.Sleep(delay)
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

// checkDatabase returns an error while the database is unavailable.
func (s *scenario) checkDatabase(ctx context.Context) error {
	s.mu.Lock()
	down, hangs, freeze := s.databaseDown, s.databaseHangs, s.freeze
	s.freeze = 0
	s.mu.Unlock()
	if freeze > 0 {
		time.Sleep(freeze)
		return ctx.Err()
	}
	if hangs {
		<-ctx.Done()
	}
	if down || hangs {
		return vedette.Errorf(vedette.Unavailable, "the database is away")
	}
	return nil
}

func (s *scenario) setDatabaseDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.databaseDown = down
}

func (s *scenario) row(id vedette.OperationID) history.Operation {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rows[id]
}

func (s *scenario) ExpireOperations(_ context.Context, due time.Time, message string, at time.Time) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for id, row := range s.rows {
		if row.State == history.Pending && row.Deadline.Before(due) {
			row.State, row.Message, row.Ended = vedette.Lost, message, at
			s.rows[id] = row
			n++
		}
	}
	return n, nil
}

func (s *scenario) MoveOperation(ctx context.Context, id vedette.OperationID, from, to vedette.ServerID, deadline time.Time) (bool, error) {
	if err := s.checkDatabase(ctx); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.rows[id]
	if row.State != history.Pending || row.Server != from {
		return false, nil
	}
	row.Server, row.Deadline = to, deadline
	s.rows[id] = row
	return true, nil
}

func (s *scenario) MarkOperationsLost(context.Context, vedette.ServerID, string, time.Time) (int, error) {
	return 0, nil
}
func (s *scenario) PurgeOperations(ctx context.Context, _ time.Time, _ int) (int, int64, error) {
	s.mu.Lock()
	delay := s.purgeDelay
	s.mu.Unlock()
	select {
	case <-time.After(delay):
	case <-ctx.Done():
	}
	return 0, 0, ctx.Err()
}
func (s *scenario) PurgeOperationsOf(context.Context, vedette.Verb, time.Time, int) (int, int64, error) {
	return 0, 0, nil
}
func (s *scenario) Histories(context.Context, []vedette.AccountName) (map[*history.History][]vedette.AccountName, error) {
	return nil, nil
}

func (s *scenario) HistoryBytesOf(context.Context, vedette.Verb) (int64, error) { return 0, nil }
func (s *scenario) PurgeOrphans(context.Context, int) (int, error)              { return 0, nil }
func (s *scenario) HistorySize(context.Context) (history.Size, error) {
	return history.Size{}, nil
}
func (s *scenario) UndoneOperation(_ context.Context, _ vedette.AccountName, _ vedette.Key, template, _ string) (vedette.OperationID, error) {
	for id, row := range s.rows {
		for _, c := range row.Changes {
			if c.TemplateAfter == template {
				return id, nil
			}
		}
	}
	return "", nil
}

func (s *scenario) WriteThrough(ctx context.Context, account vedette.AccountName, _ vedette.Term, o vedette.Object, end *history.Operation) ([]commit.Change, bool, error) {
	if err := s.checkDatabase(ctx); err != nil {
		return nil, false, err
	}
	s.logf("stored %s at %s", o.Key, o.ResourceVersion)
	if end == nil {
		return nil, false, nil
	}
	err := s.EndOperations(ctx, []history.Operation{*end})
	return nil, err == nil, err
}

func (s *scenario) RemoveThrough(ctx context.Context, account vedette.AccountName, _ vedette.Term, key vedette.Key, uid string, end *history.Operation) ([]commit.Change, bool, error) {
	s.logf("removed %s %s", key, uid)
	if end == nil {
		return nil, false, nil
	}
	err := s.EndOperations(ctx, []history.Operation{*end})
	return nil, err == nil, err
}

func (s *scenario) RemoveAbsent(ctx context.Context, account vedette.AccountName, _ vedette.Term, absent vedette.Absence, uid string, end *history.Operation) ([]commit.Change, bool, error) {
	s.logf("absent %s at %s %s", absent.Key, absent.Version, uid)
	if end == nil {
		return nil, false, nil
	}
	err := s.EndOperations(ctx, []history.Operation{*end})
	return nil, err == nil, err
}

func (s *scenario) HasReached(_ context.Context, account vedette.AccountName, o vedette.ObjectVersion) (bool, error) {
	return s.isStored("%s at %s of %s", o.Key, o.Version, account)
}

func (s *scenario) HasRemoved(_ context.Context, account vedette.AccountName, absent vedette.Absence, uid string, wasStored bool) (bool, error) {
	return s.isStored("no %s at %s of %s: %s, was stored: %v", absent.Key, absent.Version, account, uid, wasStored)
}

// isStored answers for another server that writes the account.
func (s *scenario) isStored(format string, args ...any) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = fmt.Sprintf(format, args...)
	return s.elsewhere, s.elsewhereErr
}

func (s *scenario) Prioritize(vedette.AccountName) (end func()) {
	s.addPriority(1)
	return func() { s.addPriority(-1) }
}

func (s *scenario) addPriority(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prioritized += n
}

func (s *scenario) Resources(ctx context.Context, _ ...vedette.AccountName) ([]vedette.Resource, error) {
	if err := s.checkDatabase(ctx); err != nil {
		return nil, err
	}
	return []vedette.Resource{{Kind: deployments, Version: "v1", Plural: "deployments", Namespaced: true},
		{Kind: versionedGadget.Kind, Version: "v2", Plural: "gadgets", Namespaced: true}}, nil
}

func (s *scenario) UID(ctx context.Context, _ vedette.AccountName, key vedette.Key) (uid, version string, err error) {
	if s.uidDelay > 0 {
		time.Sleep(s.uidDelay)
	}
	return s.uids[key], "v7", s.checkDatabase(ctx)
}

func (s *scenario) Publish([]commit.Change) {}

// fakeAgent is a connected agent's process.
type fakeAgent struct {
	scenario *scenario
	name     string
	attached *AttachedAgent
	sendErr  error // what Send returns
}

func (a *fakeAgent) Send(op vedette.Operation) error {
	if a.sendErr != nil {
		return a.sendErr
	}
	notes := ""
	if d, ok := op.Args.(vedette.DeleteArgs); ok {
		notes = deleteNotes(d)
	}
	if op.Cluster.UID != "" {
		notes += ", in cluster " + op.Cluster.UID
	}
	a.scenario.logf("%s: execute %s%s", a.name, op.ID, notes)
	return nil
}

func deleteNotes(d vedette.DeleteArgs) (notes string) {
	if d.KnownUID != "" {
		notes += ", uid " + d.KnownUID
	}
	if d.OnlyKnown {
		notes += ", only this uid"
	}
	if d.MissingOK {
		notes += ", may be missing"
	}
	return notes
}

func (a *fakeAgent) Cancel(id vedette.OperationID) { a.scenario.logf("%s: cancel %s", a.name, id) }
func (a *fakeAgent) Forget(id vedette.OperationID) { a.scenario.logf("%s: forget %s", a.name, id) }
func (a *fakeAgent) answer(out vedette.Outcome)    { a.attached.HandleOutcome(out) }
func (a *fakeAgent) answerDone(id vedette.OperationID) {
	a.answer(vedette.Outcome{ID: id, State: vedette.Done, Status: 200})
}

// connect attaches an agent's process as the cacher of prod.
func (s *scenario) connect(id vedette.AgentID, process string) *fakeAgent {
	return s.connectTo(prodCluster, id, process)
}

// prodCluster is the cluster of prod for agents that may not read its uid.
var prodCluster = vedette.Cluster{Host: "https://prod", Fingerprint: "AA"}

// connectTo is like connect, for an agent that registered a cluster.
func (s *scenario) connectTo(cluster vedette.Cluster, id vedette.AgentID, process string) *fakeAgent {
	m := &assigner.Member{Agent: assignment.Agent{ID: id, Hostname: "host", Version: "1.0"}}
	a := &fakeAgent{scenario: s, name: string(id) + "/" + process}
	a.attached = s.Attach(m, process, a)
	s.mu.Lock()
	s.registered[m], s.cachers["prod"] = cluster, m
	notifyAssigned := s.notifyAssigned
	s.mu.Unlock()
	notifyAssigned()
	return a
}

func (s *scenario) disconnect(a *fakeAgent) {
	s.mu.Lock()
	s.cachers["prod"] = nil
	s.mu.Unlock()
	a.attached.Detach()
}

// start executes an operation and logs its outcome.
func (s *scenario) start(id vedette.OperationID, args vedette.Args) context.CancelFunc {
	return s.startOperation(vedette.Operation{ID: id, Account: "prod", Args: args})
}

func (s *scenario) startDryRun(id vedette.OperationID, args vedette.Args) {
	s.startOperation(vedette.Operation{ID: id, Account: "prod", Args: args, DryRun: true})
}

func (s *scenario) startOperation(op vedette.Operation) context.CancelFunc {
	ctx, cancel := context.WithCancel(s.t.Context())
	go func() {
		out := s.Execute(ctx, op)
		s.logf("%s %s %d %s%s", out.ID, out.State, out.Status, out.Message, strings.Join(out.Warnings, ", "))
	}()
	synctest.Wait()
	return cancel
}

var (
	deployments = vedette.Kind{Group: "apps", Name: "Deployment"}

	web     = vedette.Target{Kind: "deployment", Namespace: "shop", Name: "web"}
	scale   = vedette.ScaleArgs{Target: web, Replicas: 3}
	restart = vedette.RestartArgs{Target: web}
	get     = vedette.GetArgs{Target: web}
)
