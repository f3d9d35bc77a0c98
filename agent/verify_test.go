package agent

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/outbox"
	"github.com/vedette-io/vedette/agent/uplink"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/agent/watch/verify"
	"github.com/vedette-io/vedette/wire"
)

var podFeed = vedette.Feed{Kind: vedette.Kind{Name: "Pod"}}

// takeRecords returns the records that wait in a box.
func takeRecords(t *testing.T, box *outbox.Box) (records []*wire.Record) {
	t.Helper()
	changes, err := box.Take(t.Context(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		rec := &wire.Record{}
		if err := proto.Unmarshal(c.Record, rec); err != nil {
			t.Fatal(err)
		}
		records = append(records, rec)
	}
	return records
}

// TestComparisonsGetTheirOwnAnswers checks that a question follows the changes of its feed, and that only its
// own answer ends it.
func TestComparisonsGetTheirOwnAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := outbox.New(1 << 20)
		box.Recall("a", 1)
		box.Open("a", 1, nil)
		cs := &comparisons{}
		c := &comparer{account: "a", box: box, comparisons: cs}
		if err := box.Put(t.Context(), outbox.Change{Account: "a", Feed: podFeed, Priority: outbox.Bulk, Key: "n/x"}); err != nil {
			t.Fatal(err)
		}
		var got verify.Answer
		var gotErr error
		done := make(chan bool)
		go func() {
			defer close(done)
			got, gotErr = c.Compare(t.Context(), podFeed, verify.Request{Bits: 1, Sums: []uint64{7, 8}})
		}()
		synctest.Wait()
		records := takeRecords(t, box)
		if len(records) != 2 || !slices.Equal(records[1].GetVerify().GetSums(), []uint64{7, 8}) {
			t.Fatalf("got records %v, want the change and then the question", records)
		}
		id := records[1].GetVerify().GetId()
		answer := uplink.VerifyAnswer{Account: "a", Feed: podFeed, ID: id, Buckets: []uint32{1}, Digests: []uint64{5}, NameHashes: []uint64{6}}
		stale := answer
		stale.ID--
		cs.answer(stale)
		other := answer
		other.Feed = vedette.Feed{Kind: vedette.Kind{Name: "Service"}}
		cs.answer(other)
		synctest.Wait()
		select {
		case <-done:
			t.Fatal("got an answer to another question")
		default:
		}
		cs.answer(answer)
		cs.answer(answer) // must not block
		<-done
		if gotErr != nil || !slices.Equal(got.Buckets, []uint32{1}) || len(got.Objects) != 1 || got.Objects[0] != (verify.Object{Digest: 5, Name: 6}) {
			t.Errorf("got %+v, %v, want the answer", got, gotErr)
		}
	})
}

func TestRefusedAndCanceledComparisons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := outbox.New(1 << 20)
		cs := &comparisons{}
		c := &comparer{account: "a", box: box, comparisons: cs}
		ctx, cancel := context.WithCancel(t.Context())
		var err error
		go func() { _, err = c.Compare(ctx, podFeed, verify.Request{}) }()
		synctest.Wait()
		cs.answer(uplink.VerifyAnswer{Feed: podFeed, ID: 1, Refusal: "the agent has verified too much"})
		synctest.Wait()
		if err == nil || !strings.Contains(err.Error(), "verified too much") {
			t.Errorf("got error %v, want the refusal", err)
		}
		asked := time.Now()
		go func() { _, err = c.Compare(ctx, podFeed, verify.Request{}) }()
		synctest.Wait()
		cs.abandon()
		synctest.Wait()
		if err == nil || !strings.Contains(err.Error(), "assigned the account anew") || time.Since(asked) > 0 {
			t.Errorf("got error %v after %v, want one at once", err, time.Since(asked))
		}
		go func() { _, err = c.Compare(ctx, podFeed, verify.Request{}) }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		if !errors.Is(err, context.Canceled) || len(cs.byFeed) != 0 {
			t.Errorf("got error %v and %d questions that wait, want %v and none", err, len(cs.byFeed), context.Canceled)
		}
	})
}

func TestReportOfDrift(t *testing.T) {
	box := outbox.New(1 << 20)
	box.Recall("a", 1)
	box.Open("a", 1, nil)
	c := &comparer{account: "a", box: box, comparisons: &comparisons{}}
	err := c.Report(t.Context(), podFeed, watch.VerifyReport{Count: verify.Count{Missing: 1, LeftOver: 2, Changed: 3}, Examples: []string{"n/x"}, Restored: true})
	if err != nil {
		t.Fatal(err)
	}
	got := takeRecords(t, box)[0].GetVerified()
	if got.GetMissing() != 1 || got.GetLeftOver() != 2 || got.GetChanged() != 3 || !slices.Equal(got.GetExamples(), []string{"n/x"}) || !got.GetRestored() {
		t.Errorf("got %v", got)
	}
}
