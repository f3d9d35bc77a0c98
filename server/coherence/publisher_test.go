package coherence

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/membership"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/versions"
)

func effect(account string) Entry {
	return Entry{Effect: &versions.Message{Account: vedette.AccountName(account)}}
}

// TestPongsFollowWhatWasPublishedBefore pings while more is waiting than a batch has.
func TestPongsFollowWhatWasPublishedBefore(t *testing.T) {
	p := NewPublisher()
	p.Publish(effect("before"))
	r := p.NewReader()
	const n = 3*maxBatchEntries + 1
	for range n {
		p.Publish(effect("a"))
	}
	r.Ping(Ping{ID: 7})
	p.Publish(effect("after"))
	got := 0
	for {
		batch, err := r.Next(t.Context(), noReports)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range batch.Entries {
			if e.Effect.Account == "before" {
				t.Error("it is told what was published before it came")
			}
			got++
		}
		if batch.Pong != 0 {
			break
		}
	}
	if got < n {
		t.Errorf("the ping is answered after %d of %d entries", got, n)
	}
}

// TestReadersThatAreBehindBeginAgain publishes more than may wait for a reader that takes nothing.
func TestReadersThatAreBehindBeginAgain(t *testing.T) {
	p := NewPublisher()
	slow, fast := p.NewReader(), p.NewReader()
	large := Entry{Effect: &versions.Message{Changed: []versions.ChangedObject{{Name: strings.Repeat("n", 1<<20)}}}}
	for range 2 * maxLogBytes >> 20 {
		p.Publish(large)
		if _, err := fast.Next(t.Context(), noReports); err != nil {
			t.Fatal(err)
		}
	}
	if p.bytes > maxLogBytes {
		t.Errorf("%d bytes wait for readers, want %d at most", p.bytes, maxLogBytes)
	}
	if _, err := slow.Next(t.Context(), noReports); !errors.Is(err, ErrBehind) {
		t.Errorf("got %v, want %v", err, ErrBehind)
	}
	slow.Close()
	if len(p.entries) > 0 || p.bytes != 0 {
		t.Errorf("%d entries of %d bytes are kept that all readers have", len(p.entries), p.bytes)
	}
}

// TestConfirmationsAreOfWhatWasGiven confirms what the reader was not given.
func TestConfirmationsAreOfWhatWasGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPublisher()
		time.Sleep(2 * Validity)
		r := p.NewReader()
		p.Publish(effect("a"))
		r.Ping(Ping{ID: 1, Confirmed: 1 << 60})
		began := time.Now()
		if err := p.Flush(t.Context()); err != nil || time.Since(began) < Validity {
			t.Errorf("got %v after %v, want that it waits until the reader is not current any more", err, time.Since(began))
		}
		if _, err := r.Next(t.Context(), noReports); err != nil {
			t.Fatal(err)
		}
		r.Ping(Ping{ID: 2, Confirmed: 2})
		began = time.Now()
		if err := p.Flush(t.Context()); err != nil || time.Since(began) > 0 {
			t.Errorf("after a confirmation: got %v after %v, want at once", err, time.Since(began))
		}
		r.Close()
		p.Publish(effect("b"))
		began = time.Now()
		if err := p.Flush(t.Context()); err != nil || time.Since(began) < Validity {
			t.Errorf("a reader that has left: got %v after %v, want that it waits until the reader is not current any more", err, time.Since(began))
		}
		p.NewReader().Close()
		if len(p.readers) != 1 {
			t.Errorf("%d readers are kept, want those that may be current", len(p.readers))
		}
	})
}

// TestLiveEventsAreForThoseWhoWantThem publishes changes with and without a reader that wants them.
func TestLiveEventsAreForThoseWhoWantThem(t *testing.T) {
	p := NewPublisher()
	r := p.NewReader()
	changes := Entry{Changes: []commit.Change{{Account: "prod"}}}
	p.Publish(changes)
	if len(p.entries) != 0 {
		t.Error("changes are kept that nobody wants")
	}
	r.Ping(Ping{ID: 1, WantsChanges: true})
	p.Publish(changes)
	if batch, err := r.Next(t.Context(), noReports); err != nil || len(batch.Entries) != 1 {
		t.Errorf("got %+v, %v, want the changes", batch, err)
	}
}

// alone is the servers of a database of which none but this one was ever seen.
type alone struct{ since time.Time }

func (a *alone) Current() membership.Servers {
	return membership.Servers{"s1": {ID: "s1", Token: "t1"}}
}
func (a *alone) CurrentSince() time.Time  { return a.since }
func (a *alone) Changed() <-chan struct{} { return nil }

// TestServersMustBeKnown has a server that cannot read who shares its database.
func TestServersMustBeKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers := &alone{}
		c := New(Config{Token: "t1", Servers: servers, Log: slog.New(slog.DiscardHandler)})
		if c.refresh(); c.IsCurrent() {
			t.Error("it is current before it knows the servers")
		}
		servers.since = time.Now()
		if c.refresh(); !c.IsCurrent() {
			t.Error("it is not current, and there is no other server")
		}
		time.Sleep(Validity)
		if c.refresh(); c.IsCurrent() {
			t.Error("it is current, and the servers were read too long ago")
		}
	})
}

func TestPingsAreAnsweredOnce(t *testing.T) {
	start := time.Now()
	at := func(d time.Duration) time.Time { return start.Add(d) }
	var f follower
	first, second := f.ping(at(0), false), f.ping(at(time.Second), false)
	f.taken(10, second.ID)
	f.taken(9, first.ID) // comes late
	f.taken(11, 99)      // was never sent
	if !f.since.Equal(at(time.Second)) || f.confirmed != 11 {
		t.Errorf("got %+v, want that it is current since the second ping", f)
	}
	for i := range 100 {
		f.ping(at(time.Duration(i)*time.Second), false)
	}
	if len(f.sent) > 20 {
		t.Errorf("%d pings wait for an answer", len(f.sent))
	}
}

// TestReportsLookNoFresherElsewhere reports an account to a server whose clock is an hour ahead, over a slow network.
func TestReportsLookNoFresherElsewhere(t *testing.T) {
	now := time.Now()
	reports := []Report{{"prod", now.Add(-time.Second), now.Add(-time.Minute)}, {"new", time.Time{}, time.Time{}}, {"ahead", now.Add(time.Hour), now}}
	p := NewPublisher()
	r := p.NewReader()
	var f follower
	sent := now.Add(time.Hour) // by the other clock
	ping := f.ping(sent, false)
	ping.WantsReports = true
	r.Ping(ping)
	batch, err := r.Next(t.Context(), func() []Report { return reports })
	if err != nil || batch.Pong != ping.ID {
		t.Fatalf("got %+v, %v, want an answer", batch, err)
	}
	got := reportsOf(batch.Ages, sent)
	if len(got) != 3 || got[0].FreshAt.After(sent.Add(-time.Second)) || got[0].FreshAt.Before(sent.Add(-time.Minute)) ||
		got[0].CompleteAt.After(sent.Add(-time.Minute)) || !got[1].FreshAt.IsZero() || got[2].FreshAt.After(sent) {
		t.Errorf("got %+v", got)
	}
	if again := reportsOf([]Age{{"liar", 1<<63 - 1, -1 << 62}}, sent); !again[0].FreshAt.Before(sent.AddDate(-90, 0, 0)) || !again[0].CompleteAt.IsZero() {
		t.Errorf("got %+v", again)
	}
}
