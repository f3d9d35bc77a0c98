package agent

import (
	"context"
	"fmt"
	"sync"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/outbox"
	"github.com/vedette-io/vedette/agent/uplink"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/agent/watch/verify"
	"github.com/vedette-io/vedette/wire"
)

// comparer implements watch.Comparer. Its questions travel in the feed's stream, so that everything
// before them is stored when they are answered.
type comparer struct {
	account     vedette.AccountName
	box         *outbox.Box
	comparisons *comparisons
}

// Compare implements watch.Comparer.
func (c *comparer) Compare(ctx context.Context, feed vedette.Feed, r verify.Request) (verify.Answer, error) {
	id, answered := c.comparisons.begin(feed)
	defer c.comparisons.end(feed, id)
	err := c.put(ctx, feed, verifyKey, &wire.Record_Verify{Verify: &wire.Verify{Id: id, Bits: uint32(r.Bits), Sums: r.Sums,
		Buckets: r.Buckets, Named: r.Named}})
	if err != nil {
		return verify.Answer{}, err
	}
	select {
	case <-ctx.Done():
		return verify.Answer{}, context.Cause(ctx)
	case a := <-answered:
		return toAnswer(a)
	}
}

func toAnswer(a uplink.VerifyAnswer) (verify.Answer, error) {
	if a.Refusal != "" {
		return verify.Answer{}, fmt.Errorf("the server does not answer: %s", a.Refusal)
	}
	answer := verify.Answer{Buckets: a.Buckets, Names: a.Names, Objects: make([]verify.Object, len(a.Digests))}
	for i, digest := range a.Digests {
		answer.Objects[i] = verify.Object{Digest: digest, Name: a.NameHashes[i]}
	}
	return answer, nil
}

// Report implements watch.Comparer.
func (c *comparer) Report(ctx context.Context, feed vedette.Feed, found watch.VerifyReport) error {
	return c.put(ctx, feed, verifiedKey, &wire.Record_Verified{Verified: &wire.Verified{Missing: uint64(found.Missing),
		LeftOver: uint64(found.LeftOver), Changed: uint64(found.Changed), Examples: found.Examples, Restored: found.Restored}})
}

func (c *comparer) put(ctx context.Context, feed vedette.Feed, key string, step wire.Step) error {
	record, err := wire.EncodeStep(step)
	if err != nil {
		return err
	}
	return c.box.Put(ctx, outbox.Change{Account: c.account, Feed: feed, Priority: outbox.Live, Key: key, Question: key == verifyKey,
		Record: record})
}

// comparisons are the questions of an account that wait for their answers, one per feed at most.
type comparisons struct {
	mu     sync.Mutex
	last   uint64
	byFeed map[vedette.Feed]comparison
}

type comparison struct {
	id       uint64
	answered chan uplink.VerifyAnswer // has room for the answer
}

// begin returns the id of a new question, and where its answer arrives.
func (cs *comparisons) begin(feed vedette.Feed) (id uint64, answered <-chan uplink.VerifyAnswer) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.byFeed == nil {
		cs.byFeed = map[vedette.Feed]comparison{}
	}
	cs.last++
	c := comparison{cs.last, make(chan uplink.VerifyAnswer, 1)}
	cs.byFeed[feed] = c
	return c.id, c.answered
}

func (cs *comparisons) end(feed vedette.Feed, id uint64) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.byFeed[feed].id == id {
		delete(cs.byFeed, feed)
	}
}

// answer passes an answer on. Answers that nobody waits for, or that come twice, are dropped.
func (cs *comparisons) answer(a uplink.VerifyAnswer) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c, waits := cs.byFeed[a.Feed]; waits && c.id == a.ID {
		c.answered <- a
		delete(cs.byFeed, a.Feed)
	}
}

// abandon ends the questions that wait, because their answers may be lost: the server has assigned the account anew,
// most often over a new connection. The verifications are repeated.
func (cs *comparisons) abandon() {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for feed, c := range cs.byFeed {
		c.answered <- uplink.VerifyAnswer{Refusal: "it has assigned the account anew"}
		delete(cs.byFeed, feed)
	}
}
