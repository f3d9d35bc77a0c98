package ingest

import (
	"fmt"
	"sync"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// omissions records which objects of an agent's feeds are omitted. The feeds' messages name these
// objects until they are stored, are deleted, or a new snapshot begins.
type omissions struct {
	mu    sync.Mutex
	feeds map[accountFeed]*feedOmissions
}

type accountFeed struct {
	account vedette.AccountName
	feed    vedette.Feed
}

// feedOmissions records the omitted objects of one feed.
type feedOmissions struct {
	keys   map[vedette.Key]bool // at most maxNamedOmissions
	others int                  // how many more
	last   omittedObject
}

const maxNamedOmissions = 100

func (o *feedOmissions) message() string {
	switch n := len(o.keys) + o.others; n {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("1 object is left out because the database cannot store it: %s: %v", o.last.key, o.last.reason)
	default:
		return fmt.Sprintf("%d objects are left out because the database cannot store them; the last one is %s: %v", n, o.last.key, o.last.reason)
	}
}

// reset forgets the omissions of a feed. It is called when a snapshot of the feed begins.
func (l *omissions) reset(account vedette.AccountName, feed vedette.Feed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.feeds, accountFeed{account, feed})
}

// removeStored removes objects that a batch writes or deletes from the omissions, and adds the
// changed messages to the batch.
func (l *omissions) removeStored(b *store.Batch, touched map[vedette.Feed]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.feeds) == 0 {
		return
	}
	for i := range b.Upserts {
		l.removeLocked(b.Account, touched, b.Upserts[i].Key)
	}
	for _, d := range b.Deletes {
		l.removeLocked(b.Account, touched, d.Key)
	}
	l.writeNotesLocked(b, touched)
}

func (l *omissions) removeLocked(account vedette.AccountName, touched map[vedette.Feed]bool, key vedette.Key) {
	if o := l.feeds[accountFeed{account, feedOf(touched, key)}]; o != nil {
		delete(o.keys, key)
	}
}

// add records objects that are omitted from a batch, and adds the changed messages to the batch.
func (l *omissions) add(b *store.Batch, touched map[vedette.Feed]bool, omitted []omittedObject) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.feeds == nil {
		l.feeds = map[accountFeed]*feedOmissions{}
	}
	for _, object := range omitted {
		key := accountFeed{b.Account, feedOf(touched, object.key)}
		o := l.feeds[key]
		if o == nil {
			o = &feedOmissions{keys: map[vedette.Key]bool{}}
			l.feeds[key] = o
		}
		if len(o.keys) < maxNamedOmissions {
			o.keys[object.key] = true
		} else if !o.keys[object.key] {
			o.others++
		}
		o.last = object
	}
	l.writeNotesLocked(b, touched)
}

// writeNotesLocked adds the messages of the feeds to a batch. It does not replace the agent's own
// messages.
func (l *omissions) writeNotesLocked(b *store.Batch, touched map[vedette.Feed]bool) {
	hasMessage := map[vedette.Feed]bool{}
	for i := range b.Feeds {
		u := &b.Feeds[i]
		hasMessage[u.Feed] = u.State != "" && u.Message != ""
		if o := l.feeds[accountFeed{b.Account, u.Feed}]; o != nil && !hasMessage[u.Feed] {
			message := o.message()
			u.Note, hasMessage[u.Feed] = &message, true
		}
	}
	for feed := range touched {
		key := accountFeed{b.Account, feed}
		o := l.feeds[key]
		if o == nil {
			continue
		}
		if message := o.message(); !hasMessage[feed] {
			b.Feeds = append(b.Feeds, store.FeedUpdate{Feed: feed, Note: &message})
		}
		if len(o.keys)+o.others == 0 {
			delete(l.feeds, key)
		}
	}
}

// feedOf returns the feed that an object belongs to: the feed of its namespace if touched contains
// it, or else the feed of all namespaces.
func feedOf(touched map[vedette.Feed]bool, key vedette.Key) vedette.Feed {
	if namespaced := (vedette.Feed{Kind: key.Kind, Namespace: key.Namespace}); touched[namespaced] {
		return namespaced
	}
	return vedette.Feed{Kind: key.Kind}
}
