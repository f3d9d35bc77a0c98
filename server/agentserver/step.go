package agentserver

import (
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/ingest"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/wire"
)

// maxFeedMessage is the maximum length in bytes of the message of a feed.
const maxFeedMessage = 4096

// decodeStep converts a record. A step or a state that this server does not know becomes a
// bookmark without a mark, which changes nothing but is acknowledged.
func decodeStep(rec *wire.Record, size int) ingest.Step {
	s := ingest.Step{
		Type: ingest.Bookmark, Size: size, Feed: wire.ToFeed(rec.GetFeed()),
		Account: vedette.AccountName(rec.GetAccount()), Term: vedette.Term(rec.GetTerm()),
	}
	switch step := rec.GetStep().(type) {
	case *wire.Record_Upsert:
		s.Type, s.Object = ingest.Upsert, wire.ToObject(s.Feed.Kind, step.Upsert)
		if step.Upsert.GetLive() {
			s.Mark = vedette.Mark(s.Object.ResourceVersion)
		}
	case *wire.Record_Delete:
		s.Type, s.Mark = ingest.Delete, vedette.Mark(step.Delete.GetResourceVersion())
		s.Object.Key = vedette.Key{Kind: s.Feed.Kind, Namespace: step.Delete.GetNamespace(), Name: step.Delete.GetName()}
	case *wire.Record_Bookmark:
		s.Mark = vedette.Mark(step.Bookmark.GetResourceVersion())
	case *wire.Record_Drop:
		s.Type, s.Digests = ingest.Drop, step.Drop.GetDigests()
	case *wire.Record_Begin:
		s.Type = ingest.Begin
	case *wire.Record_End:
		s.Type, s.Mark = ingest.End, vedette.Mark(step.End.GetResourceVersion())
	case *wire.Record_Status:
		if state := vedette.FeedState(step.Status.GetState()); slices.Contains(vedette.FeedStates, state) {
			s.Type, s.State, s.Message = ingest.Status, state, vedette.CleanText(step.Status.GetMessage(), maxFeedMessage)
		}
	case *wire.Record_Declare:
		s.Type, s.Feeds, s.UnknownGroups = ingest.Declare, declaredFeeds(step.Declare), step.Declare.GetUnknownGroups()
	case *wire.Record_Heartbeat:
		s.Type = ingest.Heartbeat // toStep sets the time
	}
	return s
}

func declaredFeeds(d *wire.Declare) []store.DeclaredFeed {
	feeds := make([]store.DeclaredFeed, 0, len(d.GetFeeds()))
	for _, f := range d.GetFeeds() {
		feed := wire.ToFeed(f.GetFeed())
		feeds = append(feeds, store.DeclaredFeed{Feed: feed, Resource: vedette.Resource{
			Kind: feed.Kind, Version: f.GetVersion(), Plural: f.GetPlural(), Singular: f.GetSingular(),
			ShortNames: f.GetShortNames(), Namespaced: f.GetNamespaced(),
		}})
	}
	return feeds
}
