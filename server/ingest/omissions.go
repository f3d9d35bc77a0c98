package ingest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/commit"
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
	keys   map[vedette.Key]bool // at most maxNamedOmissions, shortened
	others int                  // how many more
	last   string               // the object and the reason
}

const maxNamedOmissions = 100

// shortKey returns a key for the memory of omissions, because objects may be omitted for the length of
// their names. Names that are too long are represented by their digests.
func shortKey(key vedette.Key) vedette.Key {
	key.Namespace, key.Name = shortName(key.Namespace), shortName(key.Name)
	return key
}

const maxOmittedName = 512 // bytes; a longer name cannot be stored

func shortName(name string) string {
	if len(name) <= maxOmittedName {
		return strings.Clone(name) // not the record that it was read from
	}
	digest := sha256.Sum256([]byte(name))
	return hex.EncodeToString(digest[:])
}

func (o omittedObject) describe() string {
	o.key.Namespace, o.key.Name = vedette.CleanText(o.key.Namespace, maxOmittedName), vedette.CleanText(o.key.Name, maxOmittedName)
	return o.key.String()
}

func (o *feedOmissions) message() string {
	switch n := len(o.keys) + o.others; n {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("1 object is left out because the database cannot store it: %s", o.last)
	default:
		return fmt.Sprintf("%d objects are left out because the database cannot store them; the last one is %s", n, o.last)
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
func (l *omissions) removeStored(b *commit.Batch, touched map[vedette.Feed]bool) {
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
		delete(o.keys, shortKey(key))
	}
}

// add records objects that are omitted from a batch, and adds the changed messages to the batch.
func (l *omissions) add(b *commit.Batch, touched map[vedette.Feed]bool, omitted []omittedObject) {
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
		short := shortKey(object.key)
		if len(o.keys) < maxNamedOmissions {
			o.keys[short] = true
		} else if !o.keys[short] {
			o.others++
		}
		o.last = fmt.Sprintf("%s: %v", object.describe(), object.reason)
	}
	l.writeNotesLocked(b, touched)
}

// writeNotesLocked adds the messages of the feeds to a batch. It does not replace the agent's own
// messages.
func (l *omissions) writeNotesLocked(b *commit.Batch, touched map[vedette.Feed]bool) {
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
			b.Feeds = append(b.Feeds, commit.FeedUpdate{Feed: feed, Note: &message})
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
