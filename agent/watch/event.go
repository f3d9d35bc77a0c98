package watch

import (
	"context"
	"errors"

	"github.com/vedette-io/vedette"
)

// EventType is the type of an Event.
type EventType int

// The types of an Event:
//
//	Declare                       all feeds, before the first event of a new one
//	Status pending                the first event of a feed, and the first after each Reset
//	Begin (Item | Delete)… End    a snapshot; the next Begin voids a Begin without an End
//	(Upsert | Delete | Bookmark)… changes after the snapshot or the mark
const (
	Declare  EventType = iota + 1 // Feeds and UnknownGroups are complete
	Begin                         // a snapshot begins
	Item                          // Raw is an object of the snapshot
	End                           // the snapshot is complete as of Mark
	Upsert                        // Raw is an object that was created or updated
	Delete                        // Raw is the last state of a deleted object
	Bookmark                      // there were no other changes up to Mark
	// Status means that State and Message changed. Without a feed, it is about the account: pending
	// says why the account waits for other accounts, and nothing else about it.
	Status
)

// String returns the name of the type, for logs.
func (t EventType) String() string {
	names := [...]string{"none", "declare", "begin", "item", "end", "upsert", "delete", "bookmark", "status"}
	if t < 0 || int(t) >= len(names) {
		return "unknown"
	}
	return names[t]
}

// Event is one event of one feed, or the declaration of all feeds.
type Event struct {
	Type EventType
	FeedSpec
	// Raw is one JSON object with kind and apiVersion. Only its extent was determined; its
	// content is not validated. It lies in the read buffer: it is valid during the call of
	// Put, which may change it in place.
	Raw     []byte
	Anew    bool         // of Begin: what is stored has other content than its versions say
	Mark    vedette.Mark // of End, Upsert, Delete, Bookmark and of the Status after a Reset
	State   vedette.FeedState
	Message string // the reason of the State, for people; may be empty
	Feeds   []FeedSpec
	// UnknownGroups are API groups that could not be discovered. That their kinds are
	// missing from Feeds means nothing.
	UnknownGroups []string
	// Problem says what the selection asks for that the cluster does not serve. It is set
	// in Declare only, and empty if there is no problem.
	Problem string
}

// ErrUnreadable is what a Sink returns for a change that it can neither read nor skip,
// because it does not know which object was deleted. The feed is listed again.
var ErrUnreadable = errors.New("a change could not be read; listing again")

// FeedSpec is a feed and the resource from which it is read.
type FeedSpec struct {
	vedette.Feed
	Resource vedette.Resource
	// Omit lists namespaces that the API server filters out of the feed.
	Omit []string
	// Objects is the whole content of a feed that is derived from the configuration. It is
	// nil for a feed that is read from the API server.
	Objects      [][]byte
	metadataOnly bool // PartialObjectMetadata is requested
	managedOnly  bool // objects without Spinnaker's application annotation are filtered out
	isTrigger    bool // its changes trigger discovery; it is not part of the account
}

// ListPath returns the path of the feed's list at the API server.
func (w FeedSpec) ListPath() string {
	root := "/api/"
	if group := w.Resource.Kind.Group; group != "" {
		root = "/apis/" + group + "/"
	}
	namespace := ""
	if w.Namespace != "" {
		namespace = "/namespaces/" + w.Namespace
	}
	return root + w.Resource.Version + namespace + "/" + w.Resource.Plural
}

// Sink receives events. Put is called by one goroutine at a time for one feed, and
// concurrently for several feeds. It blocks while there is no room; meanwhile nothing more
// of the feed is read. An error ends the Watcher, with two exceptions: ErrUnreadable, and
// any error after ctx has ended, as it does when a feed is stopped or reset.
type Sink interface {
	Put(ctx context.Context, e Event) error
}
