package ingest

import (
	"fmt"
	"sync"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// leftOuts knows which objects of an agent's feeds are left out, so that the feeds'
// messages say so until the objects are stored after all, are gone, or are told
// again by a snapshot.
type leftOuts struct {
	mu    sync.Mutex
	feeds map[accountFeed]*omission
}

type accountFeed struct {
	account vedette.AccountName
	feed    vedette.Feed
}

// omission is what one feed lacks.
type omission struct {
	keys map[vedette.Key]bool // the first mostNamed of them
	more int                  // others
	last leftOut
}

const mostNamed = 100

func (o *omission) text() string {
	switch n := len(o.keys) + o.more; n {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("an object is left out, because the database can't keep it: %s: %v", o.last.key, o.last.reason)
	default:
		return fmt.Sprintf("%d objects are left out, because the database can't keep them; the last is %s: %v", n, o.last.key, o.last.reason)
	}
}

// forget is called when a feed's snapshot begins.
func (l *leftOuts) forget(account vedette.AccountName, feed vedette.Feed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.feeds, accountFeed{account, feed})
}

// settle drops what a batch writes or deletes from what is left out, and has the
// batch write the messages that follow from that.
func (l *leftOuts) settle(b *store.Batch, told map[vedette.Feed]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.feeds) == 0 {
		return
	}
	for i := range b.Upserts {
		l.dropLocked(b.Account, told, b.Upserts[i].Key)
	}
	for _, d := range b.Deletes {
		l.dropLocked(b.Account, told, d.Key)
	}
	l.noteLocked(b, told)
}

func (l *leftOuts) dropLocked(account vedette.AccountName, told map[vedette.Feed]bool, key vedette.Key) {
	if o := l.feeds[accountFeed{account, feedOf(told, key)}]; o != nil {
		delete(o.keys, key)
	}
}

// add notes objects that are left out of a batch, and has it write the messages.
func (l *leftOuts) add(b *store.Batch, told map[vedette.Feed]bool, out []leftOut) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.feeds == nil {
		l.feeds = map[accountFeed]*omission{}
	}
	for _, left := range out {
		at := accountFeed{b.Account, feedOf(told, left.key)}
		o := l.feeds[at]
		if o == nil {
			o = &omission{keys: map[vedette.Key]bool{}}
			l.feeds[at] = o
		}
		if len(o.keys) < mostNamed {
			o.keys[left.key] = true
		} else if !o.keys[left.key] {
			o.more++
		}
		o.last = left
	}
	l.noteLocked(b, told)
}

// noteLocked writes into a batch what its feeds lack. A message of the agent's own
// goes before.
func (l *leftOuts) noteLocked(b *store.Batch, told map[vedette.Feed]bool) {
	said := map[vedette.Feed]bool{}
	for i := range b.Feeds {
		u := &b.Feeds[i]
		said[u.Feed] = u.State != "" && u.Message != ""
		if o := l.feeds[accountFeed{b.Account, u.Feed}]; o != nil && !said[u.Feed] {
			text := o.text()
			u.Note, said[u.Feed] = &text, true
		}
	}
	for feed := range told {
		at := accountFeed{b.Account, feed}
		o := l.feeds[at]
		if o == nil {
			continue
		}
		if text := o.text(); !said[feed] {
			b.Feeds = append(b.Feeds, store.FeedUpdate{Feed: feed, Note: &text})
		}
		if len(o.keys)+o.more == 0 {
			delete(l.feeds, at)
		}
	}
}

// feedOf returns the feed of those that a batch told of which an object is part: the
// one of its namespace, or else the one of all.
func feedOf(told map[vedette.Feed]bool, key vedette.Key) vedette.Feed {
	if own := (vedette.Feed{Kind: key.Kind, Namespace: key.Namespace}); told[own] {
		return own
	}
	return vedette.Feed{Kind: key.Kind}
}
