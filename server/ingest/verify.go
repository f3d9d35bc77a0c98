package ingest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/commit"
)

// Verify is an agent's question what is stored of a feed; see wire.Verify.
type Verify struct {
	ID      uint64
	Bits    int
	Sums    []uint64
	Buckets []uint32
	Named   []uint64
}

// Verified says that a feed equals its cluster, and what was different before.
type Verified struct {
	Missing, LeftOver, Changed int
	Examples                   []string
	Restored                   bool
}

// VerifyAnswer answers a Verify.
type VerifyAnswer struct {
	ID      uint64
	Buckets []uint32 // whose sums differ
	Objects []VerifiedObject
	Names   []string
	Refusal string // why the server did not answer; empty if it did
}

// VerifiedObject is an object of a bucket.
type VerifiedObject struct{ Digest, NameHash uint64 }

// The limits of a Verify.
const (
	maxVerifyBits    = 12
	maxVerifyBuckets = 64
	maxVerifyNamed   = 64 // in a question
	maxVerifyNames   = 8  // in an answer
	maxVerifyObjects = 4096
	// maxScanTime is how long a verification may hold up the other changes of its account.
	maxScanTime = 10 * time.Second
	// maxVerifications is how many verifications of all agents read the database at the same time. Those of one
	// source are half of them at most.
	maxVerifications = 4
	// A source may use verifyBurst of time of the database at once, and 1/verifyShare of the time in
	// the long run. One verification of 100,000 objects takes a third of a second.
	verifyBurst = 10 * time.Second
	verifyShare = 20
	// maxIdleSources is from how many sources on those that have all their time are forgotten.
	maxIdleSources = 1024
)

// IsValid reports whether a Verify is within its limits.
func (v *Verify) IsValid() bool {
	return v.Bits >= 0 && v.Bits <= maxVerifyBits && (len(v.Sums) == 0 || len(v.Sums) == 1<<v.Bits) &&
		len(v.Buckets) <= maxVerifyBuckets && len(v.Named) <= maxVerifyNamed
}

var errTooManyObjects = errors.New("too many objects share the buckets")

// verifyTime bounds the time of the database that each source uses for verifications. It is kept by source, because
// an agent that connects anew would begin with an unused burst.
type verifyTime struct {
	mu      sync.Mutex
	sources map[string]*sourceTime
}

// sourceTime is the time that a source has spent, less what was given back, as of since.
type sourceTime struct {
	spent time.Duration
	since time.Time
}

func (s *sourceTime) update(now time.Time) {
	s.spent = max(0, s.spent-now.Sub(s.since)/verifyShare)
	s.since = now
}

func (v *verifyTime) mayRun(source string, now time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.sources[source]
	if s == nil {
		return true
	}
	if s.update(now); s.spent == 0 {
		delete(v.sources, source)
	}
	return s.spent < verifyBurst
}

func (v *verifyTime) spend(source string, d time.Duration, now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.sources[source]
	if s == nil {
		v.removeIdleLocked(now)
		s = &sourceTime{since: now}
		v.sources[source] = s
	}
	s.update(now)
	s.spent += d
}

// removeIdleLocked removes sources that have been given back all their time, once there are many.
func (v *verifyTime) removeIdleLocked(now time.Time) {
	if len(v.sources) < maxIdleSources {
		return
	}
	for name, s := range v.sources {
		if s.update(now); s.spent == 0 {
			delete(v.sources, name)
		}
	}
}

// verify answers a Verify. It never fails the account: an agent that gets no answer tries again.
func (p *Pipeline) verify(ctx context.Context, s Step) error {
	answer := VerifyAnswer{ID: s.Verify.ID}
	if refusal := p.compare(ctx, s, &answer); refusal != "" {
		answer = VerifyAnswer{ID: s.Verify.ID, Refusal: refusal}
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, errBlocking) {
		return cause
	}
	return p.responder.VerifyAnswer(s.Account, s.Feed, answer)
}

// compare fills the answer, or returns why there is none.
func (p *Pipeline) compare(ctx context.Context, s Step, answer *VerifyAnswer) (refusal string) {
	switch {
	case !s.Verify.IsValid():
		return "the request is not valid"
	case !p.ingest.verifyTime.mayRun(p.source, time.Now()):
		return "agents of this host have verified too much"
	}
	turn := p.ingest.verifications.TryAcquire(p.source, 1)
	if turn == nil {
		return "the server verifies other accounts"
	}
	defer turn.Release()
	began := time.Now()
	defer func() { p.ingest.verifyTime.spend(p.source, time.Since(began), time.Now()) }()
	scan := newVerifyScan(s.Verify)
	scanCtx, cancel := context.WithTimeout(ctx, maxScanTime)
	defer cancel()
	err := p.ingest.store.ScanObjects(scanCtx, s.Account, s.Feed, scan.add)
	switch {
	case errors.Is(err, errTooManyObjects):
		return errTooManyObjects.Error()
	case err != nil:
		p.log.Debug("cannot verify a feed", "account", s.Account, "feed", s.Feed.String(), "error", err)
		return "the database cannot be read"
	}
	scan.fill(answer)
	return ""
}

// verifyScan collects the answer to a Verify.
type verifyScan struct {
	*Verify
	sums    []uint64
	wanted  map[uint32]bool
	named   map[uint64]bool
	objects []VerifiedObject
	names   []string
}

func newVerifyScan(v *Verify) *verifyScan {
	s := &verifyScan{Verify: v, wanted: map[uint32]bool{}, named: map[uint64]bool{}}
	if len(v.Sums) > 0 {
		s.sums = make([]uint64, len(v.Sums))
	}
	for _, bucket := range v.Buckets {
		s.wanted[bucket] = true
	}
	for _, digest := range v.Named {
		s.named[digest] = true
	}
	return s
}

func (s *verifyScan) add(objects []commit.StoredObject) error {
	for i := range objects {
		o := &objects[i]
		bucket := vedette.Bucket(o.Digest, s.Bits)
		if s.sums != nil {
			s.sums[bucket] += o.Digest
		}
		if s.named[o.Digest] && len(s.names) < maxVerifyNames {
			s.names = append(s.names, vedette.Key{Namespace: o.Namespace, Name: o.Name}.Path())
		}
		if !s.wanted[uint32(bucket)] {
			continue
		}
		if len(s.objects) == maxVerifyObjects {
			return errTooManyObjects
		}
		s.objects = append(s.objects, VerifiedObject{o.Digest, vedette.HashName(o.Namespace, o.Name)})
	}
	return nil
}

func (s *verifyScan) fill(answer *VerifyAnswer) {
	for i, sum := range s.sums {
		if sum != s.Sums[i] {
			answer.Buckets = append(answer.Buckets, uint32(i))
		}
	}
	answer.Objects, answer.Names = s.objects, s.names
}

// Drift counts the objects that agents found to differ from their clusters, and read anew.
type Drift struct{ Missing, LeftOver, Changed, RestoredFeeds int64 }

type driftCounts struct{ missing, leftOver, changed, restored atomic.Int64 }

// Drift returns what agents found since the server started.
func (in *Ingest) Drift() Drift {
	d := &in.drift
	return Drift{d.missing.Load(), d.leftOver.Load(), d.changed.Load(), d.restored.Load()}
}

// maxDrift bounds what one report counts, whatever an agent claims.
const maxDrift = 1 << 24

// total returns the number of objects that differed.
func (v *Verified) total() int64 {
	return int64(min(max(v.Missing, 0), maxDrift) + min(max(v.LeftOver, 0), maxDrift) + min(max(v.Changed, 0), maxDrift))
}

// noteDrift counts and logs what was found, after it is stored that the feed is verified.
func (p *Pipeline) noteDrift(b *batch) {
	for feed, v := range b.verified {
		d := &p.ingest.drift
		d.missing.Add(int64(min(max(v.Missing, 0), maxDrift)))
		d.leftOver.Add(int64(min(max(v.LeftOver, 0), maxDrift)))
		d.changed.Add(int64(min(max(v.Changed, 0), maxDrift)))
		if v.Restored {
			d.restored.Add(1)
		}
		if v.total() == 0 && !v.Restored {
			continue
		}
		if n, ok := p.ingest.driftLog.Allow(); ok {
			p.log.Warn("a feed had drifted from its cluster, and was read anew", "account", b.account, "feed", feed.String(),
				"missing", v.Missing, "left_over", v.LeftOver, "changed", v.Changed, "restored", v.Restored, "examples", v.Examples, "count", n)
		}
	}
}
