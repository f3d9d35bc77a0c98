package gate_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/accounts"
	"github.com/vedette-io/vedette/server/gate"
	"github.com/vedette-io/vedette/server/ingest"
	"github.com/vedette-io/vedette/server/roster"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/wire"
)

// lockedTake is a store in which nobody can take one account, until it is open; the
// first time it says that the database is away.
type lockedTake struct {
	*store.Store
	open chan struct{}
	once sync.Once
}

func (l *lockedTake) Acquire(ctx context.Context, account vedette.AccountName, h store.Holder) (vedette.Term, error) {
	if account != "locked" {
		return l.Store.Acquire(ctx, account, h)
	}
	select {
	case <-l.open:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	var err error
	l.once.Do(func() { err = vedette.Errorf(vedette.Unavailable, "the database is away") })
	if err != nil {
		return 0, err
	}
	return l.Store.Acquire(ctx, account, h)
}

// TestARegistrationThatWaits holds that an account about which the store hangs keeps
// no other from its agent, and what fails is asked again, on the same connection.
func TestARegistrationThatWaits(t *testing.T) {
	st, err := store.Open(t.Context(), store.Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "v.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	log := slog.New(slog.DiscardHandler)
	held := &lockedTake{Store: st, open: make(chan struct{})}
	door := gate.New(gate.Config{Server: "s1", Pulse: time.Hour}, ingest.New(ingest.Config{}, st, ingest.NewHub(), log),
		roster.New("s1", held, accounts.New(accounts.Config{}, st, log), log), nil, log)
	ctx, cancel := context.WithCancel(t.Context())
	link := &slowLink{ctx: ctx, up: make(chan *wire.AgentMessage), down: make(chan *wire.ServerMessage)}
	var session sync.WaitGroup
	defer session.Wait()
	defer cancel()
	session.Go(func() { _ = door.Connect(link) })
	link.greet(t)
	for _, name := range []string{"locked", "free"} {
		link.say(t, &wire.AgentMessage{Message: &wire.AgentMessage_Register{Register: &wire.Register{
			Account: name, Cluster: &wire.Cluster{Uid: name, Host: "https://u"}, Properties: []byte("{}")}}})
	}
	a := link.receive(t).GetAssignment()
	if a.GetAccount() != "free" || a.GetRole() != wire.Assignment_ROLE_CACHER {
		t.Fatalf("while an account is locked the agent hears %v", a)
	}
	link.send(t, &wire.Record{Account: "free", Term: a.GetTerm(), Step: &wire.Record_Declare{Declare: &wire.Declare{}}})
	if n := link.receive(t).GetAck().GetRecords(); n != 1 {
		t.Errorf("%d records of the other account are acknowledged", n)
	}
	close(held.open)
	if a := link.receive(t).GetAssignment(); a.GetAccount() != "locked" || a.GetRole() != wire.Assignment_ROLE_CACHER {
		t.Errorf("when it is free the agent hears %v", a)
	}
}

// lines counts what is logged.
type lines struct {
	slog.Handler
	n atomic.Int64
}

// Enabled implements slog.Handler.
func (l *lines) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (l *lines) Handle(context.Context, slog.Record) error { l.n.Add(1); return nil }

// WithAttrs implements slog.Handler.
func (l *lines) WithAttrs([]slog.Attr) slog.Handler { return l }

// TestNobodyFillsTheLog has an agent register what can't be registered again and again.
func TestNobodyFillsTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, err := store.Open(t.Context(), store.Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "v.db")})
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		written := &lines{Handler: slog.DiscardHandler}
		log := slog.New(written)
		door := gate.New(gate.Config{Server: "s1", Pulse: time.Hour}, ingest.New(ingest.Config{}, st, ingest.NewHub(), log),
			roster.New("s1", st, accounts.New(accounts.Config{}, st, log), log), nil, log)
		ctx, cancel := context.WithCancel(t.Context())
		link := &slowLink{ctx: ctx, up: make(chan *wire.AgentMessage), down: make(chan *wire.ServerMessage)}
		var session sync.WaitGroup
		session.Go(func() { _ = door.Connect(link) })
		link.greet(t)
		synctest.Wait()
		before := written.n.Load()
		for range 200 {
			link.say(t, &wire.AgentMessage{Message: &wire.AgentMessage_Register{Register: &wire.Register{Account: "a", Properties: []byte("[]")}}})
		}
		synctest.Wait()
		if n := written.n.Load() - before; n != 1 {
			t.Errorf("200 registrations at once made %d lines, want 1", n)
		}
		cancel()
		session.Wait()
	})
}
