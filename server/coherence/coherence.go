package coherence

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/sync/errgroup"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/membership"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// Stream is a connection to a Reader of another server. Send and Receive are called by one goroutine each.
type Stream interface {
	// Ping sends a ping.
	Ping(Ping) error
	// Receive waits for the next batch.
	Receive() (Batch, error)
}

// servers knows the servers that share the database.
type servers interface {
	Current() membership.Servers
	// CurrentSince returns when they were last known to be these.
	CurrentSince() time.Time
	Changed() <-chan struct{}
}

// Config configures a Coherence.
type Config struct {
	Token   string // of this process
	Servers servers
	// Open opens a stream to another server, which lasts until its context ends.
	Open func(ctx context.Context, s sqldb.SharingServer) (Stream, error)
	// Take takes in what another server has changed, before it returns.
	Take func(Entry)
	// TakeAll is called when anything may have changed.
	TakeAll func()
	// WantsChanges reports whether there are readers of live events. It must not call the Coherence.
	WantsChanges func() bool
	Log          *slog.Logger
}

// Coherence hears what the other servers change. It is safe for concurrent use.
type Coherence struct {
	*Publisher

	cfg Config

	mu        sync.Mutex
	followers map[string]connected // by the token of the other server's process
	answered  chan struct{}        // closed and replaced when a server has answered, or is not connected any more
	reported  map[string]reported  // by the same; also those that are not connected now

	// since is since when this server was current at the latest; nil if it is not. It holds for Validity.
	since atomic.Pointer[time.Time]
}

// connected is what is known of a server that is connected.
type connected struct {
	*follower

	soon chan struct{} // holds an element if the next ping is sent at once
}

// pingSoon makes the next ping be sent at once.
func (c connected) pingSoon() {
	select {
	case c.soon <- struct{}{}:
	default:
	}
}

// New returns a Coherence that hears nobody before Run.
func New(cfg Config) *Coherence {
	return &Coherence{Publisher: NewPublisher(), cfg: cfg, followers: map[string]connected{}, reported: map[string]reported{},
		answered: make(chan struct{})}
}

// AwaitChanges waits until the other servers send their changes, so that none is missing after it. A reader of live events that has
// begun before must call it, because servers send no changes while nobody reads them. It does not wait for a server that is not connected,
// nor for longer than Validity: TakeAll is called when the changes of such a server come. The error is that of ctx.
func (c *Coherence) AwaitChanges(ctx context.Context) error {
	timeout := time.NewTimer(Validity)
	defer timeout.Stop()
	for isLate := false; ; {
		answered, isWaiting := c.wantChanges(isLate)
		if !isWaiting {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-answered:
		case <-timeout.C:
			isLate = true
		}
	}
}

// wantChanges makes servers that do not send their changes be asked at once, and reports whether there are any. If it is late, it only
// notes that something is missing.
func (c *Coherence) wantChanges(isLate bool) (answered <-chan struct{}, isWaiting bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.followers {
		if f.hears {
			continue
		}
		isWaiting = !isLate
		f.missesChange = f.missesChange || isLate
		if f.wanted == 0 {
			f.pingSoon()
		}
	}
	return c.answered, isWaiting
}

func (c *Coherence) notifyAnsweredLocked() {
	close(c.answered)
	c.answered = make(chan struct{})
}

// Reported returns what another server says about an account that an agent of it reports, and whether one does. If that server is not heard
// any more, it is the last that it said, which is older then.
func (c *Coherence) Reported(account vedette.AccountName) (Report, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var last Report
	var isReported bool
	for _, all := range c.reported {
		if r, has := all[account]; has && (!isReported || r.FreshAt.After(last.FreshAt)) {
			last, isReported = r, true
		}
	}
	return last, isReported
}

// takeReports keeps the reports of a server. Their times were ages at the other server, which were measured after the ping was sent, so
// counted from then they are not later than they were.
func (c *Coherence) takeReports(token string, reports []Report) {
	all := make(reported, len(reports))
	for _, r := range reports {
		all[r.Account] = r
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reported[token] = all
}

// IsCurrent reports whether this server has taken in what the others have made known to all before the call.
func (c *Coherence) IsCurrent() bool {
	since := c.since.Load()
	return since != nil && elapsed(*since, time.Now()) < Validity
}

// refresh computes since.
func (c *Coherence) refresh() {
	since := c.cfg.Servers.CurrentSince() // first: servers that are added later are not known for that long
	others := c.cfg.Servers.Current()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range others {
		if s.Token == c.cfg.Token {
			continue
		}
		f := c.followers[s.Token]
		if f.follower == nil || f.since.IsZero() {
			c.since.Store(nil)
			return
		}
		if f.since.Before(since) {
			since = f.since
		}
	}
	c.since.Store(&since)
}

// Run hears the other servers until ctx ends.
func (c *Coherence) Run(ctx context.Context) error {
	following := map[string]context.CancelFunc{}
	var group errgroup.Group
	defer func() { _ = group.Wait() }()
	tick := time.NewTicker(PingInterval)
	defer tick.Stop()
	for {
		changed := c.cfg.Servers.Changed()
		current := c.cfg.Servers.Current()
		known := map[string]bool{}
		for _, s := range current {
			known[s.Token] = true
			if s.Token == c.cfg.Token || following[s.Token] != nil {
				continue
			}
			followCtx, cancel := context.WithCancel(ctx)
			following[s.Token] = cancel
			group.Go(func() error { c.follow(followCtx, s); return nil })
		}
		for token, cancel := range following {
			if !known[token] {
				cancel()
				delete(following, token)
			}
		}
		c.forgetReports(known)
		c.refresh()
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-tick.C:
		}
	}
}

// forgetReports forgets what servers have reported that have ended.
func (c *Coherence) forgetReports(known map[string]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.reported, func(token string, _ reported) bool { return !known[token] })
}

// follow hears one server until ctx ends. A server that has ended loses its row soon, so a failure is reported when it lasts.
func (c *Coherence) follow(ctx context.Context, s sqldb.SharingServer) {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = 50*time.Millisecond, time.Second
	var failing time.Time // since when
	isReported := false
	for ctx.Err() == nil {
		began := time.Now()
		err := c.followOnce(ctx, s)
		if time.Since(began) > Validity {
			wait.Reset()
			failing, isReported = time.Time{}, false
		}
		if failing.IsZero() {
			failing = time.Now()
		}
		if !isReported && ctx.Err() == nil && time.Since(failing) > Validity {
			c.cfg.Log.Warn("another server is not heard: this one reads the database for each request meanwhile", "server", s.ID,
				"address", s.PeerAddress, "error", err)
			isReported = true
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait.NextBackOff()):
		}
	}
}

// followOnce hears a server until its stream ends.
func (c *Coherence) followOnce(ctx context.Context, s sqldb.SharingServer) error {
	group, ctx := errgroup.WithContext(ctx)
	stream, err := c.cfg.Open(ctx, s)
	if err != nil {
		return err
	}
	f := connected{&follower{}, make(chan struct{}, 1)}
	c.mu.Lock()
	c.followers[s.Token] = f
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.followers, s.Token)
		c.notifyAnsweredLocked()
		c.mu.Unlock()
		c.refresh()
	}()
	group.Go(func() error { return c.sendPings(ctx, f, stream) })
	group.Go(func() error { return c.receive(s.Token, f, stream) })
	return group.Wait()
}

// sendPings sends a ping each PingInterval, and when something was taken in, so that the other server need not wait for that.
func (c *Coherence) sendPings(ctx context.Context, f connected, stream Stream) error {
	tick := time.NewTicker(PingInterval)
	defer tick.Stop()
	var askedReports time.Time
	for {
		now := time.Now()
		c.mu.Lock()
		ping := f.ping(now, c.cfg.WantsChanges()) // a reader that begins after that finds whether it was counted
		c.mu.Unlock()
		if ping.WantsReports = now.Sub(askedReports) >= reportsInterval; ping.WantsReports {
			askedReports = now
		}
		if err := stream.Ping(ping); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		case <-f.soon:
		}
	}
}

// receive takes in what the other server tells. What it has changed before the stream began is not known, so everything may have changed
// when it answers the first time.
func (c *Coherence) receive(token string, f connected, stream Stream) error {
	hasBegun := false
	for {
		batch, err := stream.Receive()
		if err != nil {
			return err
		}
		for _, e := range batch.Entries {
			c.cfg.Take(e)
		}
		if batch.Pong != 0 && !hasBegun {
			hasBegun = true
			c.cfg.TakeAll()
		}
		c.mu.Lock()
		sent, isAnswer := f.taken(batch.Position, batch.Pong)
		isMissed := f.takeMissed()
		if isAnswer {
			c.notifyAnsweredLocked()
		}
		c.mu.Unlock()
		if isMissed {
			c.cfg.TakeAll()
		}
		if isAnswer {
			c.refresh()
		}
		if isAnswer && batch.Ages != nil {
			c.takeReports(token, reportsOf(batch.Ages, sent))
		}
		if len(batch.Entries) > 0 {
			f.pingSoon()
		}
	}
}
