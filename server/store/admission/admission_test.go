package admission

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
)

func TestCommitsAreSmallBesideOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name         string
			operation    vedette.AccountName // empty for none
			ended        time.Duration       // ago; 0 while it is in progress
			singleWriter bool
			want         int // limit of commits to account "prod"
		}{
			{"no operation", "", 0, true, 0},
			{"an operation of the account", "prod", 0, false, 64},
			{"an operation of another account", "test", 0, false, 0},
			{"an operation of another account, and one writer at a time", "test", 0, true, 64},
			{"an operation that has just ended", "prod", GracePeriod / 2, false, 64},
			{"an operation that ended a while ago", "prod", GracePeriod * 2, false, 0},
		} {
			a := NewActiveOperations(64, c.singleWriter)
			end := func() {}
			if c.operation != "" {
				end = a.Begin(c.operation)
			}
			if c.ended > 0 {
				end()
				end() // has no effect
				time.Sleep(c.ended)
			}
			if got := a.ChunkLimit("prod"); got != c.want {
				t.Errorf("%s: got a limit of %d objects, want %d", c.name, got, c.want)
			}
		}
		time.Sleep(GracePeriod)
	})
}

func TestLocksExcludeWritersOfOneAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Locks
		unlock, err := l.Lock(t.Context(), "prod")
		if err != nil {
			t.Fatal(err)
		}
		unlockOther, err := l.Lock(t.Context(), "test")
		if err != nil {
			t.Fatalf("got %v for another account, want its lock", err)
		}
		unlockOther()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.Lock(ctx, "prod"); err == nil {
			t.Error("got a lock that is held, want an error when the context ends")
		}
		waiting := l.Handle("prod")
		before := waiting.Generation()
		unlock()
		if err := waiting.Lock(t.Context()); err != nil || waiting.Generation() != before+1 {
			t.Errorf("got generation %d, %v after another writer, want %d", waiting.Generation(), err, before+1)
		}
		waiting.Unlock()
		waiting.Close()
		if len(l.byAccount) != 0 {
			t.Errorf("got locks %v after all handles are closed, want none", l.byAccount)
		}
	})
}

func TestUncertaintyIsPerAccount(t *testing.T) {
	var l Locks
	l.MarkUncertain("prod")
	if !l.IsUncertain("prod") || l.IsUncertain("test") {
		t.Errorf("got prod %v and test %v, want true and false", l.IsUncertain("prod"), l.IsUncertain("test"))
	}
	l.ClearUncertain("prod")
	if l.IsUncertain("prod") {
		t.Error("got prod uncertain after it was cleared")
	}
}
