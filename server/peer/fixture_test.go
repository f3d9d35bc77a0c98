package peer

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/assigner"
	"github.com/vedette-io/vedette/server/assignment"
	"github.com/vedette-io/vedette/server/dispatch"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/history"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/test/proxy"
)

// installation is what servers share: the table of servers, and a database in memory.
type installation struct {
	t testing.TB

	mu       sync.Mutex
	nodes    map[vedette.ServerID]*node
	members  map[vedette.ServerID]Peer
	accounts map[vedette.AccountName]vedette.ServerID // rows of accounts; empty without an agent
	rows     map[vedette.OperationID]history.Operation
	written  map[string]vedette.ServerID // who has written an object through, by version
	lookups  int

	isPatient bool
}

// node is a server: a real Dispatcher, with a Server and a Client over real TLS.
type node struct {
	*dispatch.Dispatcher
	installation *installation
	id           vedette.ServerID
	server       *Server
	client       *Client
	stop         func()
	proxies      map[vedette.ServerID]*proxy.Proxy // to each other server

	mu         sync.Mutex
	cachers    map[vedette.AccountName]*assigner.Member
	onAssigned func()
	forwarded  map[string]int
	asked      int // how often it was asked for the end of an operation
}

// askedDispatcher counts questions.
type askedDispatcher struct {
	*dispatch.Dispatcher
	node *node
}

func (d askedDispatcher) Ended(ctx context.Context, id vedette.OperationID) error {
	d.node.mu.Lock()
	d.node.asked++
	d.node.mu.Unlock()
	return d.Dispatcher.Ended(ctx, id)
}

func newInstallation(t testing.TB, ids ...vedette.ServerID) *installation {
	w := &installation{t: t, nodes: map[vedette.ServerID]*node{}, members: map[vedette.ServerID]Peer{}, accounts: map[vedette.AccountName]vedette.ServerID{},
		rows: map[vedette.OperationID]history.Operation{}, written: map[string]vedette.ServerID{}}
	for _, id := range ids {
		w.start(id)
	}
	return w
}

// newPatientInstallation returns an installation that gives calls the time that they have in production.
func newPatientInstallation(t testing.TB, ids ...vedette.ServerID) *installation {
	w := newInstallation(t)
	w.isPatient = true
	for _, id := range ids {
		w.start(id)
	}
	return w
}

// testConfig has short times.
var testConfig = Config{CheckInterval: 20 * time.Millisecond, ConnectTimeout: 500 * time.Millisecond, AnswerBytes: 8 << 20}

// start starts a process of a server.
func (w *installation) start(id vedette.ServerID) *node {
	w.t.Helper()
	identity, err := NewIdentity()
	if err != nil {
		w.t.Fatal(err)
	}
	on, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	n := &node{installation: w, id: id, cachers: map[vedette.AccountName]*assigner.Member{}, forwarded: map[string]int{}, proxies: map[vedette.ServerID]*proxy.Proxy{}}
	log := slog.New(slog.DiscardHandler)
	if testing.Verbose() {
		log = slog.New(slog.NewTextHandler(w.t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})).With("server", id)
	}
	if _, isBench := w.t.(*testing.B); isBench {
		log = slog.New(slog.DiscardHandler)
	}
	agentWait := 2 * time.Second
	if w.isPatient {
		agentWait = 0
	}
	n.Dispatcher = dispatch.New(dispatch.Config{Server: id, AgentWait: agentWait, Grace: 500 * time.Millisecond}, n, store{w, n}, n, log)
	cfg := testConfig
	if w.isPatient {
		cfg.ConnectTimeout = 0
	}
	cfg.Identity = identity
	cfg.Self = id
	cfg.Members = n
	cfg.Observer = n
	n.client = NewClient(cfg, store{w, n}, log)
	n.SetRemote(n.client)
	n.server = NewServer(cfg, askedDispatcher{n.Dispatcher, n}, log)
	w.mu.Lock()
	w.nodes[id] = n
	w.members[id] = Peer{ID: id, Process: fmt.Sprintf("%s at %p", id, n), Address: on.Addr().String(), Key: identity.Key()}
	w.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{n.Run, n.client.Run, func(ctx context.Context) error { return n.server.Serve(ctx, on) }} {
		running.Go(func() {
			if err := run(ctx); err != nil {
				w.t.Errorf("%s: %v", id, err)
			}
		})
	}
	n.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	w.t.Cleanup(n.stop)
	return n
}

func (w *installation) row(id vedette.OperationID) history.Operation {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rows[id]
}

// evict removes the row of a server.
func (w *installation) evict(id vedette.ServerID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.members, id)
}

// node implements members. Other servers are reached through proxies.

func (n *node) Peer(id vedette.ServerID) (Peer, bool) {
	n.installation.mu.Lock()
	p, ok := n.installation.members[id]
	n.installation.mu.Unlock()
	n.mu.Lock()
	defer n.mu.Unlock()
	if through := n.proxies[id]; ok && through != nil {
		p.Address = through.Address()
	}
	return p, ok
}

// Changed returns no channel: servers join before they call others.
func (n *node) Changed() <-chan struct{} { return nil }

func (n *node) ByKey(key [32]byte) (Peer, bool) {
	n.installation.mu.Lock()
	defer n.installation.mu.Unlock()
	for _, p := range n.installation.members {
		if p.Key == key {
			return p, true
		}
	}
	return Peer{}, false
}

// linkTo returns the network between this server and another one.
func (n *node) linkTo(other *node) *proxy.Proxy {
	p, _ := n.Peer(other.id)
	link := proxy.New(n.installation.t, p.Address)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.proxies[other.id] = link
	return link
}

func (n *node) Forwarded(result string, _ time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.forwarded[result]++
}

func (n *node) count(result string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.forwarded[result]
}

// node implements dispatch's assignments and publisher.

func (n *node) Cacher(account vedette.AccountName) (*assigner.Member, vedette.Term) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cachers[account], 1
}

func (n *node) Registered(_ *assigner.Member, account vedette.AccountName) vedette.Cluster {
	return clusterOf(account)
}
func (n *node) OnAssigned(f func())     { n.onAssigned = f }
func (n *node) Publish([]commit.Change) {}

func clusterOf(account vedette.AccountName) vedette.Cluster {
	return vedette.Cluster{UID: "uid of " + string(account)}
}

// store is the database as one server sees it.
type store struct {
	w *installation
	n *node
}

func (s store) Servers(_ context.Context, names []vedette.AccountName) (map[vedette.AccountName]vedette.ServerID, error) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.w.lookups++
	found := map[vedette.AccountName]vedette.ServerID{}
	for _, name := range names {
		if server := s.w.accounts[name]; server != "" {
			found[name] = server
		}
	}
	return found, nil
}

func (s store) Account(_ context.Context, name vedette.AccountName) (registry.Account, error) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if _, ok := s.w.accounts[name]; !ok {
		return registry.Account{}, registry.ErrNoAccount
	}
	return registry.Account{Account: vedette.Account{Name: name, Cluster: clusterOf(name)}, Server: s.w.accounts[name]}, nil
}

func (s store) Operation(_ context.Context, id vedette.OperationID) (history.Operation, error) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	row, ok := s.w.rows[id]
	if !ok {
		return row, vedette.Errorf(vedette.NotFound, "no operation %s", id)
	}
	return row, nil
}

func (s store) BeginOperation(_ context.Context, row history.Operation) error {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if _, known := s.w.rows[row.ID]; known {
		return vedette.Errorf(vedette.Conflict, "the operation %s was accepted before", row.ID)
	}
	row.State = history.Pending
	s.w.rows[row.ID] = row
	return nil
}

func (s store) EndOperations(_ context.Context, rows []history.Operation) error {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	for _, row := range rows {
		if known, ok := s.w.rows[row.ID]; ok && known.State != history.Pending {
			s.w.t.Errorf("operation %s ends twice: %s, then %s", row.ID, known.State, row.State)
		}
		s.w.rows[row.ID] = row
	}
	return nil
}

func (s store) WriteThrough(ctx context.Context, account vedette.AccountName, _ vedette.Term, o vedette.Object, end *history.Operation) ([]commit.Change, bool, error) {
	s.w.mu.Lock()
	s.w.written[string(account)+" "+o.ResourceVersion] = s.n.id
	s.w.mu.Unlock()
	if end == nil {
		return nil, false, nil
	}
	err := s.EndOperations(ctx, []history.Operation{*end})
	return nil, err == nil, err
}

func (s store) RemoveThrough(ctx context.Context, account vedette.AccountName, term vedette.Term, _ vedette.Key, uid string, end *history.Operation) ([]commit.Change, bool, error) {
	return s.WriteThrough(ctx, account, term, vedette.Object{ResourceVersion: "removed " + uid}, end)
}

func (s store) RemoveAbsent(ctx context.Context, account vedette.AccountName, term vedette.Term, absent vedette.Absence, uid string, end *history.Operation) ([]commit.Change, bool, error) {
	return s.WriteThrough(ctx, account, term, vedette.Object{ResourceVersion: "absent " + absent.Version + " " + uid}, end)
}

// HasReached says that nobody else has stored anything.
func (s store) HasReached(context.Context, vedette.AccountName, vedette.ObjectVersion) (bool, error) {
	return false, nil
}

func (s store) HasRemoved(context.Context, vedette.AccountName, vedette.Absence, string, bool) (bool, error) {
	return false, nil
}

func (s store) writer(account vedette.AccountName, version string) vedette.ServerID {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return s.w.written[string(account)+" "+version]
}

func (s store) Prioritize(vedette.AccountName) (end func()) { return func() {} }
func (s store) Resources(context.Context, ...vedette.AccountName) ([]vedette.Resource, error) {
	return []vedette.Resource{{Kind: deployments, Version: "v1", Plural: "deployments", Namespaced: true}}, nil
}
func (s store) UID(context.Context, vedette.AccountName, vedette.Key) (uid, version string, err error) {
	return "known", "v7", nil
}
func (s store) MoveOperation(context.Context, vedette.OperationID, vedette.ServerID, vedette.ServerID, time.Time) (bool, error) {
	return false, nil
}

func (s store) MarkOperationsLost(context.Context, vedette.ServerID, string, time.Time) (int, error) {
	return 0, nil
}
func (s store) ExpireOperations(context.Context, time.Time, string, time.Time) (int, error) {
	return 0, nil
}
func (s store) PurgeOperations(context.Context, time.Time, int) (int, int64, error) { return 0, 0, nil }
func (s store) PurgeOperationsOf(context.Context, vedette.Verb, time.Time, int) (int, int64, error) {
	return 0, 0, nil
}
func (s store) PurgeOrphans(context.Context, int) (int, error)    { return 0, nil }
func (s store) HistorySize(context.Context) (history.Size, error) { return history.Size{}, nil }
func (s store) Histories(context.Context, []vedette.AccountName) (map[*history.History][]vedette.AccountName, error) {
	return nil, nil
}

func (s store) HistoryBytesOf(context.Context, vedette.Verb) (int64, error) { return 0, nil }
func (s store) UndoneOperation(context.Context, vedette.AccountName, vedette.Key, string, string) (vedette.OperationID, error) {
	return "", nil
}

var (
	deployments = vedette.Kind{Group: "apps", Name: "Deployment"}
	web         = vedette.Target{Kind: "deployment", Namespace: "shop", Name: "web"}
	scale       = vedette.ScaleArgs{Target: web, Replicas: 3}
	restart     = vedette.RestartArgs{Target: web} // not idempotent
	get         = vedette.GetArgs{Target: web}
)

// agent is an agent's process. Like the real one, it executes each operation once, and keeps outcomes until the server says that it may
// forget them.
type agent struct {
	w       *installation
	id      vedette.AgentID
	process string
	account vedette.AccountName
	execute func(op vedette.Operation) vedette.Outcome // in a goroutine for each operation
	onSend  func(op vedette.Operation)                 // instead of all else; nil for none

	mu        sync.Mutex
	node      *node
	attached  *dispatch.AttachedAgent // nil while it is not connected
	executed  map[vedette.OperationID]int
	running   map[vedette.OperationID]bool
	outcomes  map[vedette.OperationID]vedette.Outcome
	canceled  map[vedette.OperationID]bool
	received  []vedette.Operation
	heldBack  bool // outcomes are kept, and not sent
	forgotten chan vedette.OperationID
}

func (w *installation) newAgent(id vedette.AgentID, process string, account vedette.AccountName) *agent {
	return &agent{w: w, id: id, process: process, account: account, executed: map[vedette.OperationID]int{}, running: map[vedette.OperationID]bool{},
		outcomes: map[vedette.OperationID]vedette.Outcome{}, canceled: map[vedette.OperationID]bool{}, forgotten: make(chan vedette.OperationID, 10_000),
		execute: func(op vedette.Operation) vedette.Outcome {
			return vedette.Outcome{ID: op.ID, State: vedette.Done, Status: 200, Message: string(account),
				CacheObject: &vedette.Object{Key: vedette.Key{Kind: deployments, Name: "web"}, ResourceVersion: string(op.ID), Body: []byte(`{}`)}}
		}}
}

// connect connects the agent to a server, which assigns it its account. Like the real one, it first sends the outcomes that it keeps.
func (a *agent) connect(n *node) {
	m := &assigner.Member{Agent: assignment.Agent{ID: a.id, Version: "1.0"}}
	attached := n.Attach(m, a.process, a)
	a.mu.Lock()
	a.node = n
	a.attached = attached
	var kept []vedette.Outcome
	for _, out := range a.outcomes {
		kept = append(kept, out)
	}
	a.mu.Unlock()
	for _, out := range kept {
		attached.HandleOutcome(out)
	}
	n.mu.Lock()
	n.cachers[a.account] = m
	n.mu.Unlock()
	a.w.mu.Lock()
	a.w.accounts[a.account] = n.id
	a.w.mu.Unlock()
	n.onAssigned()
}

// disconnect ends the connection. The account's row is released.
func (a *agent) disconnect() {
	a.mu.Lock()
	n, attached := a.node, a.attached
	a.attached = nil
	a.mu.Unlock()
	n.mu.Lock()
	delete(n.cachers, a.account)
	n.mu.Unlock()
	a.w.mu.Lock()
	if a.w.accounts[a.account] == n.id {
		a.w.accounts[a.account] = ""
	}
	a.w.mu.Unlock()
	attached.Detach()
}

func (a *agent) Send(op vedette.Operation) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.received = append(a.received, op)
	if a.onSend != nil {
		onSend := a.onSend
		go onSend(op) // after the dispatcher has released its lock
		return nil
	}
	if out, ok := a.outcomes[op.ID]; ok {
		go a.answer(out)
		return nil
	}
	if a.running[op.ID] {
		return nil
	}
	a.running[op.ID] = true
	a.executed[op.ID]++
	go func() {
		out := a.execute(op)
		a.mu.Lock()
		delete(a.running, op.ID)
		if out.Stream == nil {
			a.outcomes[op.ID] = out
		}
		a.mu.Unlock()
		a.answer(out)
	}()
	return nil
}

// answer sends an outcome over the present connection.
func (a *agent) answer(out vedette.Outcome) {
	a.mu.Lock()
	attached, heldBack := a.attached, a.heldBack
	a.mu.Unlock()
	if attached != nil && !heldBack {
		attached.HandleOutcome(out)
	}
}

func (a *agent) Cancel(id vedette.OperationID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.canceled[id] = true
}

func (a *agent) Forget(id vedette.OperationID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ok := a.outcomes[id]; ok {
		delete(a.outcomes, id)
		a.forgotten <- id
	}
}

func (a *agent) effects(id vedette.OperationID) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.executed[id]
}

// await waits until something holds.
func await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("timed out: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// start executes an operation in the background.
func (n *node) start(op vedette.Operation) <-chan vedette.Outcome {
	done := make(chan vedette.Outcome, 1)
	go func() { done <- n.Execute(n.installation.t.Context(), op) }()
	return done
}

func expectDone(t testing.TB, out vedette.Outcome) {
	t.Helper()
	if out.State != vedette.Done {
		t.Fatalf("got %s %d %s: %s", out.State, out.Status, out.Reason, out.Message)
	}
}
