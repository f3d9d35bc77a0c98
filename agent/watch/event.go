package watch

import (
	"context"
	"errors"

	"github.com/vedette-io/vedette"
)

// EventType says what an Event tells.
type EventType int

// The types of an Event:
//
//	Declare                      all feeds, before anything of a new one
//	Status pending               the first of a feed, and the first after each Reset
//	Begin (Item | Delete)… End   a snapshot; a Begin without an End is void at the next Begin
//	(Upsert | Delete | Bookmark)… changes after the snapshot or the mark
const (
	Declare  EventType = iota + 1 // Feeds and UnknownGroups are the whole list
	Begin                         // a snapshot begins
	Item                          // Raw is an object of the snapshot
	End                           // the snapshot is complete up to Mark
	Upsert                        // Raw is an object that was added or changed
	Delete                        // Raw is the last state of an object that is gone
	Bookmark                      // nothing else happened up to Mark
	Status                        // State and Message changed
)

// String returns the name of the type, for logs.
func (t EventType) String() string {
	names := [...]string{"none", "declare", "begin", "item", "end", "upsert", "delete", "bookmark", "status"}
	if t < 0 || int(t) >= len(names) {
		return "unknown"
	}
	return names[t]
}

// Event is one step of one feed, or the declaration of all of them.
type Event struct {
	Type EventType
	FeedSpec
	// Raw is one JSON object with kind and apiVersion, its extent found but its
	// inside not validated. It lies in the read buffer: it is valid, and may be
	// changed in place, during the call of Put only.
	Raw     []byte
	Mark    vedette.Mark // of End, Upsert, Delete, Bookmark and of the Status after a Reset
	State   vedette.FeedState
	Message string // why the State is what it is, for people; may be empty
	Feeds   []FeedSpec
	// UnknownGroups are API groups that nothing could be learned of at this time,
	// so that the absence of their kinds from Feeds means nothing.
	UnknownGroups []string
}

// ErrUnreadable is what a Sink returns of a change that it can't make sense of, and
// can't leave out: which object is gone can't be told. The feed is listed anew.
var ErrUnreadable = errors.New("a change could not be read; the feed is listed again")

// FeedSpec is a feed, and the resource that it is read from.
type FeedSpec struct {
	vedette.Feed
	Resource vedette.Resource
	// Omit are namespaces that the feed leaves out; the API server filters them.
	Omit []string
	// Objects are the whole content of a feed that is made up from the
	// configuration; nil for one that is watched.
	Objects      [][]byte
	metadataOnly bool // PartialObjectMetadata is asked for
	managedOnly  bool // objects without an application of Spinnaker's are left out
}

// Sink takes events. Put is called for one feed by one goroutine at a time, and
// for several feeds at once. It blocks while there is no room, and nothing more
// of the feed is read meanwhile. An error ends the Watcher, except where ctx is
// over, which it is when a feed is stopped or reset, and of ErrUnreadable.
type Sink interface {
	Put(ctx context.Context, e Event) error
}
