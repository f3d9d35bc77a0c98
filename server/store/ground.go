package store

import (
	"maps"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
)

// floors are what operations found out about the objects of all accounts that this
// process writes. What is read of one account holds as long as its gate is held;
// the mutex is for the maps.
//
// They are kept in memory alone. When a server dies, or an account moves to
// another one, its next writer goes on from the stored marks: objects may show for
// a moment as they were before an operation, until the feed tells that too.
type floors struct {
	mu       sync.Mutex
	accounts map[vedette.AccountName]*ground
}

// ground is what one account's floors and tombs stand on.
type ground struct {
	knowledge
	listings map[vedette.Feed]*listing
	left     time.Time // since when no agent has reported it to this process; zero while one does
}

func (f *floors) atLocked(account vedette.AccountName) *ground {
	if f.accounts == nil {
		f.accounts = map[vedette.AccountName]*ground{}
	}
	g := f.accounts[account]
	if g == nil {
		g = &ground{knowledge{map[vedette.Key]floor{}, map[string]tomb{}}, map[vedette.Feed]*listing{}, time.Time{}}
		f.accounts[account] = g
	}
	return g
}

// of returns a copy of what is known of an account; empty where nothing is.
func (f *floors) of(account vedette.AccountName) knowledge {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.accounts[account]
	if g == nil || g.empty() {
		return knowledge{}
	}
	return knowledge{maps.Clone(g.floors), maps.Clone(g.tombs)}
}

// settle makes what is known of an account what a batch left of it, now that it
// is stored.
func (f *floors) settle(account vedette.AccountName, s *screening) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.accounts[account]
	if g == nil {
		return
	}
	g.left = time.Time{}
	if s.floors != nil {
		g.knowledge = s.knowledge
	}
	for _, feed := range s.ended {
		delete(g.listings, feed)
	}
	f.tidyLocked(account, g)
}

func (f *floors) tidyLocked(account vedette.AccountName, g *ground) {
	if g.empty() && len(g.listings) == 0 {
		delete(f.accounts, account)
	}
}

// raise keeps a floor.
func (f *floors) raise(account vedette.AccountName, key vedette.Key, made floor) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sweepLocked(time.Now())
	f.atLocked(account).floors[key] = made
}

// bury keeps a tomb.
func (f *floors) bury(account vedette.AccountName, uid string, made tomb) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sweepLocked(made.made)
	f.atLocked(account).tombs[uid] = made
}

// standing returns what is known here of an object and a uid; its row and its feed's mark
// are in the database.
func (f *floors) standing(account vedette.AccountName, key vedette.Key, uid string) *standing {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := &standing{key: key}
	g := f.accounts[account]
	if g == nil {
		return at
	}
	if kept, ok := g.floors[key]; ok {
		at.floor = &kept
	}
	for feed, l := range g.listings {
		if covers(feed, key) {
			seen := *l
			at.listing = &seen
		}
	}
	_, at.buried = g.tombs[uid]
	return at
}

// begin notes that a feed's snapshot starts. One that starts over has no mark,
// and goes on from where the first did.
func (f *floors) begin(account vedette.AccountName, feed vedette.Feed, mark vedette.Mark) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.atLocked(account)
	if was := g.listings[feed]; was != nil && mark == "" {
		mark = was.from
	}
	g.listings[feed], g.left = &listing{from: mark}, time.Time{}
}

// indexed notes rows of a snapshot's index. The first ones open the question anew
// what the snapshot makes of the objects that have floors.
func (f *floors) indexed(account vedette.AccountName, feed vedette.Feed, first bool, rows []indexRow) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.atLocked(account)
	l := g.listings[feed]
	if l == nil {
		l = &listing{}
		g.listings[feed] = l
	}
	l.begun, l.whole = true, len(rows) < indexChunk
	if len(rows) > 0 {
		l.last = rows[len(rows)-1]
	}
	if first {
		g.reopen(feed)
	}
}

// reopen forgets what was said of a feed's objects.
func (k knowledge) reopen(feed vedette.Feed) {
	for key, f := range k.floors {
		if covers(feed, key) {
			f.dispute = dispute{}
			k.floors[key] = f
		}
	}
	for uid, t := range k.tombs {
		if covers(feed, t.key) {
			t.dispute = dispute{}
			k.tombs[uid] = t
		}
	}
}

// retain forgets the floors of objects that no feed of an account tells any more.
func (f *floors) retain(account vedette.AccountName, told func(vedette.Key) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.accounts[account]
	if g == nil {
		return
	}
	maps.DeleteFunc(g.floors, func(key vedette.Key, _ floor) bool { return !told(key) })
	maps.DeleteFunc(g.tombs, func(_ string, t tomb) bool { return !told(t.key) })
	maps.DeleteFunc(g.listings, func(feed vedette.Feed, _ *listing) bool {
		return !told(vedette.Key{Kind: feed.Kind, Namespace: feed.Namespace})
	})
	f.tidyLocked(account, g)
}

// forget drops all that is known of an account.
func (f *floors) forget(account vedette.AccountName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.accounts, account)
}

// leave notes that an account's agent has left this process. It may come back at
// once and go on where it was, for which the floors are kept.
func (f *floors) leave(account vedette.AccountName, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if g := f.accounts[account]; g != nil {
		g.left = now
	}
}

// sweepLocked drops what is kept of accounts whose agents did not come back. A
// snapshot that they left unfinished is begun anew wherever they are now.
func (f *floors) sweepLocked(now time.Time) {
	maps.DeleteFunc(f.accounts, func(_ vedette.AccountName, g *ground) bool {
		return !g.left.IsZero() && now.Sub(g.left) >= tombFor
	})
}
