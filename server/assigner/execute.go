package assigner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/fair"
	"github.com/vedette-io/vedette/server/assignment"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// maxStoreCalls is how many calls of the store wait for an answer at once. There are several, because an account that is locked in the
// database must not delay the others. Those of one source are at most maxSourceCalls, so that it delays only itself if all of its
// accounts are locked. All agents behind a proxy may be one source.
const (
	maxStoreCalls  = 256
	maxSourceCalls = maxStoreCalls / 4
)

// storeCalls are the calls of the store whose answers become events.
type storeCalls struct {
	ctx     context.Context //nolint:containedctx // calls outlive those who cause them
	cancel  context.CancelCauseFunc
	permits *fair.Line // by source

	mu       sync.Mutex
	isClosed bool
	group    sync.WaitGroup // gets nothing after it is closed

	// freshness is closed when what was known of an account's freshness is stored. Used by execute only.
	freshness map[vedette.AccountName]<-chan struct{}
}

func newStoreCalls() storeCalls {
	ctx, cancel := context.WithCancelCause(context.Background())
	return storeCalls{ctx: ctx, cancel: cancel, permits: fair.New(fair.Config{Capacity: maxStoreCalls, Share: maxSourceCalls}),
		freshness: map[vedette.AccountName]<-chan struct{}{}}
}

func (c *storeCalls) close() {
	c.mu.Lock()
	c.isClosed = true
	c.mu.Unlock()
	c.cancel(errClosed)
	c.group.Wait()
}

// start runs a function in its own goroutine. close waits for those that began before it: sessions of agents that do not leave in time end
// after it.
func (c *storeCalls) start(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosed {
		go f()
		return
	}
	c.group.Go(f)
}

// run runs a call that a source has caused, or the server itself or an operator if the source is empty, in its own goroutine. Calls wait
// for their turn, and before that until after is closed, if it is not nil. After close, calls begin at once and fail.
func (c *storeCalls) run(source string, after <-chan struct{}, call func(ctx context.Context)) {
	c.start(func() {
		if after != nil {
			<-after
		}
		c.call(c.ctx, source, call)
	})
}

func (c *storeCalls) call(ctx context.Context, source string, call func(ctx context.Context)) {
	turn, err := c.permits.Acquire(ctx, source, 1)
	if err == nil {
		defer turn.Release()
	}
	call(sqldb.WithSource(ctx, source))
}

// execute executes effects in their order. If another goroutine does it already, that one executes these, too.
func (r *Registry) execute() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isExecuting {
		return
	}
	r.isExecuting = true
	for len(r.effects) > 0 {
		effects := r.effects
		r.effects = nil
		r.mu.Unlock()
		r.keepFreshness(effects)
		for _, e := range effects {
			r.executeOne(e)
		}
		r.mu.Lock()
	}
	r.isExecuting = false
}

// executeOne executes an effect. It does not wait.
func (r *Registry) executeOne(e assignment.Effect) {
	switch e := e.(type) {
	case assignment.Admit:
		r.callFor(e.Account.Name, e.Source, func(ctx context.Context) assignment.Event { return r.admit(ctx, e) })
	case assignment.Acquire:
		r.callFor(e.Account.Name, e.Source, func(ctx context.Context) assignment.Event { return r.acquire(ctx, e) })
	case assignment.Release:
		r.callFor(e.Account, e.Source, func(ctx context.Context) assignment.Event { return r.release(ctx, e) })
	case assignment.MakeChange:
		r.callFor(e.Account.Name, "", func(ctx context.Context) assignment.Event { return r.makeChange(ctx, e) })
	case assignment.CountObjects:
		r.call(func(ctx context.Context) assignment.Event {
			sizes, err := r.store.AccountSizes(ctx)
			return assignment.Counted{Sizes: sizes, Err: err}
		})
	case assignment.Examine:
		r.call(func(ctx context.Context) assignment.Event { return r.examine(ctx, e) })
	case assignment.Send:
		if m := r.member(e.Member); m != nil {
			m.send(e.Assignment)
		}
	case assignment.SharedChanged:
		if m := r.member(e.Member); m != nil {
			m.setShared(e.IsShared)
		}
	case assignment.NotifyAssigned:
		r.notifyAssigned()
	case assignment.Reply:
		r.reply(e)
	case assignment.Log:
		r.lines.add(e)
	case assignment.KeepFreshness: // keepFreshness has done it
	default:
		r.executeForServers(e)
	}
}

// executeForServers executes an effect that concerns other servers.
func (r *Registry) executeForServers(e assignment.Effect) {
	switch e := e.(type) {
	case assignment.SendUpdate:
		r.updater.enqueue(e)
	case assignment.SendOffer:
		r.offer(e)
	case assignment.Decline:
		r.decline(e)
	case assignment.Look:
		r.looks.add(e.Account)
	case assignment.AskToLeave:
		if m := r.member(e.Member); m != nil {
			m.askToLeave(e.Reason)
		}
	}
}

// member returns a member until its Leave returns; nil for others.
func (r *Registry) member(id assignment.MemberID) *Member {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.members[id]
}

// call runs a call of the store. Its event is handled when it has ended.
func (r *Registry) call(call func(ctx context.Context) assignment.Event) {
	r.calls.run("", nil, func(ctx context.Context) { r.step(call(ctx)) })
}

// callFor is call for an account, whose freshness is stored before, and for the source that has caused it.
func (r *Registry) callFor(account vedette.AccountName, source string, call func(ctx context.Context) assignment.Event) {
	stored := r.calls.freshness[account]
	delete(r.calls.freshness, account)
	r.calls.run(source, stored, func(ctx context.Context) { r.step(call(ctx)) })
}

func (r *Registry) admit(ctx context.Context, e assignment.Admit) assignment.Event {
	row, err := r.registrar.Register(ctx, e.Account)
	return assignment.Admitted{Account: e.Account.Name, Attempt: e.Attempt, Err: err, Stored: assignment.StoredAccount{
		Properties: row.Properties, Prepared: assignment.Prepare(row.Properties), Term: row.Term, Holder: row.Holder,
		PermittedBy: row.PermittedBy, Registered: row.Registered,
		Elsewhere: r.elsewhere(ctx, registry.Assigned{Account: row.Name, Term: row.Term, Holder: row.Holder, Server: row.Server})}}
}

func (r *Registry) acquire(ctx context.Context, e assignment.Acquire) assignment.Event {
	acquired := assignment.Acquired{Account: e.Account.Name, Attempt: e.Attempt}
	r.storeMarks(ctx, e.Account.Name)
	acquired.Term, acquired.Err = r.store.Acquire(ctx, e.Account.Name, registry.CacherClaim{Agent: e.Agent, Server: r.server,
		Shape:   e.Account.Shape,
		Account: &e.Account, KeepNamespaces: e.KeepNamespaces, KeepPermissions: e.KeepPermissions,
		After: &e.After})
	if errors.Is(acquired.Err, registry.ErrOvertaken) {
		return assignment.Acquired{Account: e.Account.Name, Attempt: e.Attempt, IsOvertaken: true}
	}
	if acquired.Err == nil {
		acquired.Marks, acquired.CompleteAt, acquired.Err = r.marks(ctx, e.Account.Name)
	} else {
		acquired.Term = 0
	}
	return acquired
}

// storeMarks stores what the account's next cacher continues from. Without it, that one may have to read feeds anew that have not
// changed, so nothing waits for a database that is slow.
func (r *Registry) storeMarks(ctx context.Context, account vedette.AccountName) {
	ctx, cancel := context.WithTimeout(ctx, maxMarksWait)
	defer cancel()
	if err := r.store.StoreMarks(ctx, account); err != nil {
		r.log.DebugContext(ctx, "the last bookmarks of an account are not stored", "account", account, "error", err)
	}
}

// maxMarksWait bounds how long an account waits until its bookmarks are stored.
const maxMarksWait = time.Second

// marks returns the marks of an account's feeds, and up to when the account was complete: as far as the feed that is furthest
// behind, of those that were read once and that the cluster does not deny.
func (r *Registry) marks(ctx context.Context, account vedette.AccountName) (
	marks map[vedette.Feed]vedette.Mark, completeAt time.Time, err error) {
	feeds, err := r.store.Marks(ctx, account)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("read the marks of %s: %w", account, err)
	}
	marks = make(map[vedette.Feed]vedette.Mark, len(feeds))
	for _, f := range feeds {
		marks[f.Feed] = f.Mark
		if f.State != vedette.FeedDenied && !f.LastSeen.IsZero() && (completeAt.IsZero() || f.LastSeen.Before(completeAt)) {
			completeAt = f.LastSeen
		}
	}
	return marks, completeAt, nil
}

func (r *Registry) release(ctx context.Context, e assignment.Release) assignment.Event {
	released := assignment.Released{Account: e.Account, Attempt: e.Attempt}
	r.storeMarks(ctx, e.Account)
	for _, term := range e.Terms {
		if released.Err = r.store.Release(ctx, e.Account, term, r.server); released.Err != nil {
			break
		}
	}
	return released
}

func (r *Registry) makeChange(ctx context.Context, e assignment.MakeChange) assignment.Event {
	r.mu.Lock()
	change := r.changes[e.Request]
	delete(r.changes, e.Request)
	r.mu.Unlock()
	changed := assignment.Changed{Account: e.Account.Name, Attempt: e.Attempt, Err: errAbandoned}
	if change != nil {
		changed.Err = change(ctx, e.Account)
	}
	return changed
}

var errAbandoned = errors.New("the operator has left before the change began")

// examine reads which feeds of an account its cluster denies, and whether the others are live.
func (r *Registry) examine(ctx context.Context, e assignment.Examine) assignment.Event {
	examined := assignment.Examined{Account: e.Account, Attempt: e.Attempt, Denied: map[vedette.Feed]bool{}}
	feeds, err := r.store.Marks(ctx, e.Account)
	if err != nil {
		return examined // not live, as far as is known
	}
	examined.IsLive = true
	for _, f := range feeds {
		switch {
		case f.State == vedette.FeedDenied:
			examined.Denied[f.Feed] = true
		case f.State != vedette.FeedLive || f.Mark == "":
			examined.IsLive = false
		}
	}
	examined.IsLive = examined.IsLive && len(examined.Denied) < len(feeds)
	r.mu.Lock()
	isBusy := r.isBusy
	r.mu.Unlock()
	examined.IsBusy = isBusy != nil && isBusy(e.Account)
	return examined
}

// maxFreshnessWait bounds how long storing the freshness of an agent that has left may delay its standbys.
const maxFreshnessWait = time.Second

// maxFreshnessWrite bounds how long storing it may take.
const maxFreshnessWrite = 10 * time.Second

// keepFreshness stores up to when accounts were complete whose cachers have left, because only this process knows
// it better than the row that is written now and then.
func (r *Registry) keepFreshness(effects []assignment.Effect) {
	var last []registry.LastSeen
	stored := make(chan struct{})
	for _, e := range effects {
		kept, ok := e.(assignment.KeepFreshness)
		if !ok {
			continue
		}
		m := r.member(kept.Member)
		if m == nil { // the call of Leave has ended before the effects of the event were executed
			continue
		}
		if seen := m.lastSeen(kept.Account, kept.Term); isKnown(seen) {
			seen.HasEnded = true
			last = append(last, seen)
			r.calls.freshness[kept.Account] = stored
		}
	}
	if len(last) == 0 {
		return
	}
	written := make(chan struct{})
	r.calls.start(func() {
		defer close(written)
		r.recordLastSeen(r.calls.ctx, last)
	})
	r.calls.start(func() { // a database that is slow stores it after the accounts have been handed over
		defer close(stored)
		select {
		case <-written:
		case <-time.After(maxFreshnessWait):
		}
	})
}

func (r *Registry) recordLastSeen(ctx context.Context, last []registry.LastSeen) {
	ctx, cancel := context.WithTimeout(ctx, maxFreshnessWrite)
	defer cancel()
	if err := r.store.RecordLastSeen(ctx, last); err != nil {
		r.log.WarnContext(ctx, "the last freshness of an agent's accounts is not stored", "error", err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, seen := range last {
		if !seen.At.IsZero() {
			r.endedFreshness = append(r.endedFreshness, seen)
		}
	}
}

func (r *Registry) notifyAssigned() {
	r.mu.Lock()
	callbacks := r.onAssigned
	r.mu.Unlock()
	for _, f := range callbacks {
		f()
	}
}

func (r *Registry) reply(e assignment.Reply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if replied := r.requests[e.Request]; replied != nil {
		replied <- e
		delete(r.requests, e.Request)
	}
}
