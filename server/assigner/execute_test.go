package assigner

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/assignment"
	"github.com/vedette-io/vedette/server/store/admission"
	"github.com/vedette-io/vedette/server/store/registry"
)

// TestLockedAccountsOfOneSource registers more accounts that the database does not answer for than calls of the store may wait at once,
// and checks that an agent of another host gets its account, and that its account is released when it leaves.
func TestLockedAccountsOfOneSource(t *testing.T) {
	withFixture(t, func(t *testing.T, w fixture) {
		hostile := w.Join(assignment.Agent{ID: "a1", Source: "host a"}, func(assignment.Assignment) {})
		w.lockAccounts(hostile, 2*maxStoreCalls)
		other := w.Join(assignment.Agent{ID: "a2", Source: "host b"}, func(assignment.Assignment) {})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := other.Register(ctx, prodAccount(nil)); err != nil {
			t.Errorf("an agent of another host cannot register: %v", err)
			return
		}
		other.Leave(ctx)
		if ctx.Err() != nil || w.row("prod").Holder != "" {
			t.Error("its account was not released when it left")
		}
	})
}

// TestTransactionsOfAgentsCountForTheirSource checks that the store knows whose registrations it waits for: those of one host must not
// take the place of what operators and other hosts wait for.
func TestTransactionsOfAgentsCountForTheirSource(t *testing.T) {
	withFixture(t, func(t *testing.T, w fixture) {
		const permits = 4
		w.writers = admission.NewSemaphore(permits)
		hostile := w.Join(assignment.Agent{ID: "a1", Source: "host a"}, func(assignment.Assignment) {})
		w.lockAccounts(hostile, permits)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		permit, err := w.writers.Acquire(ctx)
		if err != nil {
			t.Error("registrations of one host have taken all transactions")
			return
		}
		permit.Release()
	})
}

// lockAccounts registers accounts whose rows are locked.
func (w fixture) lockAccounts(m *Member, n int) {
	locked := map[vedette.AccountName]bool{}
	for i := range n {
		locked[vedette.AccountName(fmt.Sprintf("locked-%d", i))] = true
	}
	w.set(func() { w.lockedRows = locked })
	ctx, cancel := context.WithCancel(w.t.Context())
	cancel() // they do not wait
	var group sync.WaitGroup
	for name := range locked {
		group.Go(func() { _ = m.Register(ctx, vedette.Account{Name: name, Cluster: vedette.Cluster{UID: "u"}}) })
	}
	group.Wait()
	synctest.Wait()
}

// TestLeaveWhileNothingIsExecuted ends the call of Leave while the log of another agent's event is not written, and checks that the
// registry continues when it is.
func TestLeaveWhileNothingIsExecuted(t *testing.T) {
	withFixture(t, func(t *testing.T, w fixture) {
		stuck := make(chan struct{})
		first, _ := w.connect("a1")
		w.register(first, nil)
		first.SetFreshness(time.Now())
		second := w.Join(assignment.Agent{ID: "a2"}, func(assignment.Assignment) { <-stuck }) // as a log whose reader stands still
		go func() {
			_ = second.Register(t.Context(), vedette.Account{Name: "other", Cluster: vedette.Cluster{UID: "u"}})
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		first.Leave(ctx)
		close(stuck)
		synctest.Wait()
		if row := w.row("prod"); row.Holder != "" {
			t.Errorf("%s still has the account", row.Holder)
		}
	})
}

// TestChangesThatFailAreForgotten checks that changes of accounts which are refused, or for which nobody waits any more, take no memory.
func TestChangesThatFailAreForgotten(t *testing.T) {
	withFixture(t, func(t *testing.T, w fixture) {
		replace := func(context.Context, vedette.Account) error { return nil }
		if _, err := w.Transfer(t.Context(), "prod", "", replace); vedette.KindOf(err) != vedette.NotFound {
			t.Errorf("got %v, want that nothing is to be accepted", err)
		}
		agent, _ := w.connect("a1")
		w.hang()
		go func() { _ = agent.Register(t.Context(), prodAccount(nil)) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		isRemoved := false
		_, err := w.Vacate(ctx, "prod", func(context.Context, vedette.AccountName) error { isRemoved = true; return nil })
		if err == nil {
			t.Error("an account was removed while its registration hangs")
		}
		w.Registry.mu.Lock()
		if n := len(w.changes); n > 0 {
			t.Errorf("%d changes are kept", n)
		}
		w.Registry.mu.Unlock()
		w.resume()
		synctest.Wait()
		if isRemoved {
			t.Error("the account was removed after the operator had left")
		}
		w.register(agent, nil)
	})
}

// TestAgentsLeaveDuringClose closes the registry while an agent leaves, as one does that does not leave before the server stops. The race
// detector finds calls of the store that Close does not know of.
func TestAgentsLeaveDuringClose(t *testing.T) {
	for range 100 {
		memory := &memoryStore{rows: map[vedette.AccountName]*registry.Account{}}
		r := New("s1", assignment.Config{}, memory, memory, slog.New(slog.DiscardHandler))
		m := r.Join(assignment.Agent{ID: "a1"}, func(assignment.Assignment) {})
		if err := m.Register(t.Context(), prodAccount(nil)); err != nil {
			t.Fatal(err)
		}
		left := make(chan struct{})
		go func() {
			defer close(left)
			m.Leave(t.Context())
		}()
		r.Close()
		<-left
	}
}
