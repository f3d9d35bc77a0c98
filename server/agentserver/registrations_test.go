package agentserver_test

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
	"github.com/vedette-io/vedette/server/agentserver"
	"github.com/vedette-io/vedette/server/assigner"
	"github.com/vedette-io/vedette/server/assignment"
	"github.com/vedette-io/vedette/server/ingest"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/wire"
)

// blockedStore is a store in which one account is locked until unblock is closed. The
// first attempt after that fails as if the database were unavailable.
type blockedStore struct {
	*store.Store
	unblock chan struct{}
	once    sync.Once
}

func (l *blockedStore) Acquire(ctx context.Context, account vedette.AccountName, h registry.CacherClaim) (vedette.Term, error) {
	if account != "locked" {
		return l.Store.Acquire(ctx, account, h)
	}
	select {
	case <-l.unblock:
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

// TestBlockedRegistrationDoesNotDelayOthers checks that a locked account does not delay
// the other accounts of its agent, and that a failed registration is retried on the
// same connection.
func TestBlockedRegistrationDoesNotDelayOthers(t *testing.T) {
	st, err := store.Open(t.Context(), sqldb.Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "v.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	log := slog.New(slog.DiscardHandler)
	blocked := &blockedStore{Store: st, unblock: make(chan struct{})}
	srv := agentserver.New(agentserver.Config{ServerID: "s1", Heartbeat: time.Hour}, ingest.New(ingest.Config{}, st, ingest.NewHub(), log),
		assigner.New("s1", assignment.Config{}, blocked, accounts.New(accounts.Config{}, st, log), log), nil, log)
	ctx, cancel := context.WithCancel(t.Context())
	stream := &slowStream{ctx: ctx, toServer: make(chan *wire.AgentMessage), toAgent: make(chan *wire.ServerMessage)}
	var session sync.WaitGroup
	defer session.Wait()
	defer cancel()
	session.Go(func() { _ = srv.Connect(stream) })
	stream.handshake(t)
	for _, name := range []string{"locked", "free"} {
		stream.sendMessage(t, &wire.AgentMessage{Message: &wire.AgentMessage_Register{Register: &wire.Register{
			Account: name, Cluster: &wire.Cluster{Uid: name, Host: "https://u"}, Properties: []byte("{}")}}})
	}
	a := stream.receive(t).GetAssignment()
	if a.GetAccount() != "free" || a.GetRole() != wire.Assignment_ROLE_CACHER {
		t.Fatalf("while an account is locked: got %v", a)
	}
	stream.sendRecord(t, &wire.Record{Account: "free", Term: a.GetTerm(), Step: &wire.Record_Declare{Declare: &wire.Declare{}}})
	if n := stream.receive(t).GetAck().GetRecords(); n != 1 {
		t.Errorf("got %d acknowledged records of the other account", n)
	}
	close(blocked.unblock)
	if a := stream.receive(t).GetAssignment(); a.GetAccount() != "locked" || a.GetRole() != wire.Assignment_ROLE_CACHER {
		t.Errorf("after the account is unlocked: got %v", a)
	}
}

// recordCounter counts log records.
type recordCounter struct {
	slog.Handler
	n atomic.Int64
}

// Enabled implements slog.Handler.
func (l *recordCounter) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (l *recordCounter) Handle(context.Context, slog.Record) error { l.n.Add(1); return nil }

// WithAttrs implements slog.Handler.
func (l *recordCounter) WithAttrs([]slog.Attr) slog.Handler { return l }

// TestRepeatedRegistrationErrorsAreLoggedOnce sends an invalid registration 200 times.
func TestRepeatedRegistrationErrorsAreLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, err := store.Open(t.Context(), sqldb.Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "v.db")})
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		counter := &recordCounter{Handler: slog.DiscardHandler}
		log := slog.New(counter)
		srv := agentserver.New(agentserver.Config{ServerID: "s1", Heartbeat: time.Hour}, ingest.New(ingest.Config{}, st, ingest.NewHub(), log),
			assigner.New("s1", assignment.Config{}, st, accounts.New(accounts.Config{}, st, log), log), nil, log)
		ctx, cancel := context.WithCancel(t.Context())
		stream := &slowStream{ctx: ctx, toServer: make(chan *wire.AgentMessage), toAgent: make(chan *wire.ServerMessage)}
		var session sync.WaitGroup
		session.Go(func() { _ = srv.Connect(stream) })
		stream.handshake(t)
		synctest.Wait()
		before := counter.n.Load()
		for range 200 {
			stream.sendMessage(t, &wire.AgentMessage{Message: &wire.AgentMessage_Register{Register: &wire.Register{Account: "a", Properties: []byte("[]")}}})
		}
		synctest.Wait()
		if n := counter.n.Load() - before; n != 1 {
			t.Errorf("got %d log lines for 200 registrations, want 1", n)
		}
		cancel()
		session.Wait()
	})
}
