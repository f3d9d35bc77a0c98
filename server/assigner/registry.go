// Package assigner assigns accounts to the agents of one server. It executes what an assignment.Fleet decides: it asks the store, tells
// agents their roles, and returns the answers to the fleet as events. It also keeps what agents report about themselves.
// docs/decisions/0041 says what an agent may change of an account, and docs/decisions/0100 how agents share accounts.
package assigner

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/assignment"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/registry"
)

// termStore is the part of the store that keeps terms and freshness.
type termStore interface {
	Acquire(ctx context.Context, account vedette.AccountName, h registry.CacherClaim) (vedette.Term, error)
	Release(ctx context.Context, account vedette.AccountName, term vedette.Term, server vedette.ServerID) error
	RecordLastSeen(ctx context.Context, sightings []registry.LastSeen) error
	RecordSharedFreshness(ctx context.Context, at time.Time, joining []registry.LastSeen) error
	// Registries returns which database has which of some accounts; nil if there is one.
	Registries(ctx context.Context, accounts []vedette.AccountName) (map[*registry.Registry][]vedette.AccountName, error)
	StoreMarks(ctx context.Context, account vedette.AccountName) error
	Marks(ctx context.Context, account vedette.AccountName) ([]read.FeedStatus, error)
	ReleaseAll(ctx context.Context) error
	ReleaseServer(ctx context.Context, server vedette.ServerID) error
	Assigned(ctx context.Context, names []vedette.AccountName) ([]registry.Assigned, error)
	Unassigned(ctx context.Context, names []vedette.AccountName) ([]registry.Assigned, error)
	AccountSizes(ctx context.Context) (map[vedette.AccountName]int64, error)
}

// registrar decides who may register an account. It returns the stored account, which an existing
// registration does not change.
type registrar interface {
	Register(ctx context.Context, a vedette.Account) (registry.Account, error)
}

// Registry assigns accounts to the agents of one server. It is safe for concurrent use. Nothing waits for the store while it holds a
// lock, so a store that hangs does not block readers.
type Registry struct {
	server    vedette.ServerID
	store     termStore
	registrar registrar
	log       *slog.Logger
	calls     storeCalls
	lines     lines // of the log

	freshness storedFreshness
	receiving map[assignment.MemberID]int64 // used by tick only

	sharing   *Sharing // nil if no other server uses the database; not changed after the start
	updater   updater
	following following
	looks     looks
	hasEnded  atomic.Bool // a server, since accounts were looked at last

	mu          sync.Mutex
	fleet       *assignment.Fleet
	members     map[assignment.MemberID]*Member // also those whose Leave has not returned
	lastMember  assignment.MemberID
	lastRequest assignment.Request
	requests    map[assignment.Request]chan<- assignment.Reply
	changes     map[assignment.Request]accountChange // of operators
	isBusy      func(vedette.AccountName) bool       // nil if no account is ever
	onAssigned  []func()                             // called when an account has a new cacher
	effects     []assignment.Effect                  // to execute
	// endedFreshness was stored when terms ended, since storeFreshness last looked.
	endedFreshness []registry.LastSeen
	isExecuting    bool // a goroutine executes effects
}

// New returns an empty registry of one server. The caller must call Close.
func New(server vedette.ServerID, cfg assignment.Config, b termStore, r registrar, log *slog.Logger) *Registry {
	created := &Registry{server: server, store: b, registrar: r, log: log, calls: newStoreCalls(),
		fleet: assignment.New(withServer(cfg, server)), freshness: storedFreshness{databases: map[freshnessWriter]*databaseFreshness{}},
		receiving: map[assignment.MemberID]int64{}, members: map[assignment.MemberID]*Member{},
		requests: map[assignment.Request]chan<- assignment.Reply{}, changes: map[assignment.Request]accountChange{},
		following: following{heard: map[vedette.ServerID]time.Time{}},
		looks:     looks{names: map[vedette.AccountName]vedette.Term{}, added: make(chan struct{}, 1)}}
	created.lines = lines{log: log, calls: &created.calls}
	return created
}

func withServer(cfg assignment.Config, server vedette.ServerID) assignment.Config {
	cfg.Server = server
	return cfg
}

// Close abandons what the store has not answered. What agents that leave later ask the store for fails at once.
func (r *Registry) Close() { r.calls.close() }

// Recover releases the accounts that an earlier process held when it ended, because none of their
// agents is connected to this process. Call it once, before the first agent connects.
func (r *Registry) Recover(ctx context.Context) error {
	if r.sharing != nil {
		return r.store.ReleaseServer(ctx, r.server)
	}
	return r.store.ReleaseAll(ctx)
}

// Run retries what the store could not do earlier, lets standbys take over from silent agents, balances agents, and stores each account's
// freshness so that it survives a restart. It also looks for agents with the same ID. It returns when ctx ends.
func (r *Registry) Run(ctx context.Context) error {
	defer r.freshness.storing.Wait()
	var group errgroup.Group
	group.Go(func() error { // in its own goroutine because it may wait for the database
		runEvery(ctx, freshnessInterval, func() { r.storeFreshness(ctx) })
		return nil
	})
	if r.sharing != nil {
		group.Go(func() error { r.watchAssignments(ctx); return nil })
		group.Go(func() error { r.watchLooks(ctx); return nil })
		group.Go(func() error { r.follow(ctx); return nil })
	}
	group.Go(func() error {
		runEvery(ctx, duplicateInterval, func() { r.findDuplicates(time.Now()) })
		return nil
	})
	runEvery(ctx, assignment.ListenInterval, r.tick)
	return group.Wait()
}

// runEvery calls do at each interval until ctx ends.
func runEvery(ctx context.Context, interval time.Duration, do func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do()
		}
	}
}

// tick tells the fleet which agents were heard.
func (r *Registry) tick() {
	clear(r.receiving)
	for _, m := range r.Members() {
		r.receiving[m.id] = m.receivingSince.Load()
	}
	r.step(assignment.Tick{Receiving: r.receiving})
}

// step handles an event, and executes what follows from it.
func (r *Registry) step(e assignment.Event) {
	r.mu.Lock()
	r.effects = append(r.effects, r.fleet.Step(e, time.Now())...)
	r.mu.Unlock()
	r.execute()
}

// request handles an event, and waits for the reply to it.
func (r *Registry) request(ctx context.Context, newEvent func(assignment.Request) assignment.Event) (assignment.Reply, error) {
	replied := make(chan assignment.Reply, 1)
	r.mu.Lock()
	r.lastRequest++
	id := r.lastRequest
	r.requests[id] = replied
	r.mu.Unlock()
	r.step(newEvent(id))
	select {
	case reply := <-replied:
		return reply, reply.Err
	case <-ctx.Done():
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.requests, id)
		return assignment.Reply{}, context.Cause(ctx)
	}
}

// holder is who reports an account.
type holder struct {
	account vedette.AccountName
	member  *Member // nil for nobody
	term    vedette.Term
	// completeAt is up to when the account was complete before the term, or else since when it is registered. It counts until the
	// member knows better.
	completeAt time.Time
}

// holders returns who reports the accounts that agents of this server have registered, without those that agents of other servers report.
func (r *Registry) holders() (all []holder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fleet.Accounts(func(a assignment.AccountStatus) {
		if a.IsElsewhere {
			return
		}
		all = append(all, holder{a.Account, r.members[a.Cacher], a.Term, a.CompleteAt})
	})
	return all
}

// Freshness returns the time up to which an account is known to be complete, and whether an agent
// reports it now.
func (r *Registry) Freshness(account vedette.AccountName) (at time.Time, live bool) {
	m, term := r.Cacher(account)
	if m == nil {
		return time.Time{}, false
	}
	return m.freshnessIn(account, term), true
}

// Cacher returns the agent that reports an account and its term, or nil if there is none.
func (r *Registry) Cacher(account vedette.AccountName) (*Member, vedette.Term) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id, term := r.fleet.Cacher(account)
	return r.members[id], term
}

// Registered returns the cluster of an account as an agent last registered it; the zero Cluster if the
// agent has not registered the account.
func (r *Registry) Registered(m *Member, account vedette.AccountName) vedette.Cluster {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fleet.Registered(m.id, account).Cluster
}

// CacherChanges returns how many accounts got another cacher since the server started, for each
// reason.
func (r *Registry) CacherChanges() map[assignment.ChangeReason]assignment.CacherChanges {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fleet.CacherChanges()
}

// OnAssigned registers f to be called whenever an account has a new cacher. f must not block.
func (r *Registry) OnAssigned(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.onAssigned = append(r.onAssigned, f)
}

// SetBusy sets what reports whether an operation of an account runs. Such an account is not moved to balance agents.
func (r *Registry) SetBusy(isBusy func(vedette.AccountName) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isBusy = isBusy
}

// Members returns the connected agents.
func (r *Registry) Members() []*Member {
	r.mu.Lock()
	defer r.mu.Unlock()
	members := make([]*Member, 0, len(r.members))
	for _, m := range r.members {
		if !m.hasLeft {
			members = append(members, m)
		}
	}
	return members
}

// Transfer gives the name of an account to the cluster of an agent that was refused because another
// cluster has the name. It runs replace with the account as that agent registered it; no agent can
// register the name meanwhile. Then it refuses the agents of the former cluster. Refused agents of
// the new one register again by themselves, within seconds. An empty agent means the only refused
// cluster.
func (r *Registry) Transfer(ctx context.Context, name vedette.AccountName, agent vedette.AgentID,
	replace func(context.Context, vedette.Account) error) (vedette.Cluster, error) {
	var cluster vedette.Cluster
	_, err := r.change(ctx, assignment.ChangeWanted{Account: name, Change: assignment.Transfer, Agent: agent},
		func(ctx context.Context, a vedette.Account) error {
			cluster = a.Cluster
			return replace(ctx, a)
		})
	if err != nil {
		return vedette.Cluster{}, err
	}
	return cluster, nil
}

// Vacate runs remove, which removes an account; no agent can register the name meanwhile. Then it
// ends the roles of the account's agents, and returns these agents. They register the account again
// by themselves if they still have it.
func (r *Registry) Vacate(ctx context.Context, name vedette.AccountName, remove func(context.Context, vedette.AccountName) error) (
	agents []vedette.AgentID, err error) {
	return r.change(ctx, assignment.ChangeWanted{Account: name, Change: assignment.Removal},
		func(ctx context.Context, a vedette.Account) error { return remove(ctx, a.Name) })
}

type accountChange func(context.Context, vedette.Account) error

// change makes an operator's change. The context of the operator's request ends a change that has begun. One that has not begun when the
// request ends is not made.
func (r *Registry) change(ctx context.Context, wanted assignment.ChangeWanted, do accountChange) ([]vedette.AgentID, error) {
	reply, err := r.request(ctx, func(id assignment.Request) assignment.Event {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.changes[id] = func(_ context.Context, a vedette.Account) error { return do(ctx, a) }
		wanted.Request = id
		return wanted
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.changes, wanted.Request) // if it has not begun
	return slices.Sorted(slices.Values(reply.Agents)), err
}

var errClosed = errors.New("the server stops")
