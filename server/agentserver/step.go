package agentserver

import (
	"math"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/ingest"
	"github.com/vedette-io/vedette/server/store/commit"
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
		s.Mark, s.IsRemembered = vedette.Mark(step.Bookmark.GetResourceVersion()), step.Bookmark.GetRemembered()
	case *wire.Record_Drop:
		s.Type, s.Digests = ingest.Drop, step.Drop.GetDigests()
	case *wire.Record_Begin:
		s.Type, s.NamedDigests = ingest.Begin, step.Begin.GetNamedDigests()
		s.Anew = step.Begin.GetAnew()
	case *wire.Record_End:
		s.Type, s.Mark = ingest.End, vedette.Mark(step.End.GetResourceVersion())
	case *wire.Record_Status:
		if state := vedette.FeedState(step.Status.GetState()); slices.Contains(vedette.FeedStates, state) {
			s.Type = ingest.Status
			s.State = state
			s.Message = vedette.CleanText(step.Status.GetMessage(), maxFeedMessage)
		}
	case *wire.Record_Declare:
		s.Type = ingest.Declare
		s.Feeds = declaredFeeds(step.Declare)
		s.UnknownGroups = step.Declare.GetUnknownGroups()
	case *wire.Record_Verify:
		s.Type, s.Verify = ingest.VerifyFeed, toVerify(step.Verify)
	case *wire.Record_Verified:
		s.Type, s.Verified = ingest.FeedVerified, toVerified(step.Verified)
	case *wire.Record_Heartbeat:
		s.Type = ingest.Heartbeat // toStep sets the time
	}
	return s
}

func toVerify(v *wire.Verify) *ingest.Verify {
	return &ingest.Verify{ID: v.GetId(), Bits: int(min(v.GetBits(), math.MaxInt32)), Sums: v.GetSums(),
		Buckets: v.GetBuckets(), Named: v.GetNamed()}
}

// maxDriftExamples is how many objects a report of drift may name.
const maxDriftExamples = 3

func toVerified(v *wire.Verified) *ingest.Verified {
	found := &ingest.Verified{Missing: toCount(v.GetMissing()), LeftOver: toCount(v.GetLeftOver()), Changed: toCount(v.GetChanged()),
		Restored: v.GetRestored()}
	for _, name := range v.GetExamples()[:min(len(v.GetExamples()), maxDriftExamples)] {
		found.Examples = append(found.Examples, vedette.CleanText(name, maxDriftExample))
	}
	return found
}

// maxDriftExample is the maximum length in bytes of the name of an object: a namespace and a name.
const maxDriftExample = 512

func toCount(n uint64) int { return int(min(n, math.MaxInt32)) }

func declaredFeeds(d *wire.Declare) []commit.DeclaredFeed {
	feeds := make([]commit.DeclaredFeed, 0, len(d.GetFeeds()))
	for _, f := range d.GetFeeds() {
		feed := wire.ToFeed(f.GetFeed())
		feeds = append(feeds, commit.DeclaredFeed{Feed: feed, Resource: vedette.Resource{
			Kind: feed.Kind, Version: f.GetVersion(), Plural: f.GetPlural(), Singular: f.GetSingular(),
			ShortNames: f.GetShortNames(), Namespaced: f.GetNamespaced(),
		}})
	}
	return feeds
}
