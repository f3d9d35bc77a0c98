package watch

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/jsonstream"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/agent/watch/lifecycle"
	"github.com/vedette-io/vedette/agent/watch/verify"
)

var (
	// errDrift reports that a feed differs from its cluster and is read anew.
	errDrift = errors.New("the feed differs from its cluster")
	// errNotSettled reports that a feed differs from its cluster however often it is read anew.
	errNotSettled = errors.New("the feed still differs from its cluster although it was read anew several times")
	// errReadAnew reports that a feed was read anew during its verification.
	errReadAnew = errors.New("the feed was read anew meanwhile")
)

type verification struct {
	v         *verifier
	f         *feed
	turn      *feedTurn
	snapshots int // of the feed, when it began
	began     time.Time
	// leftOut are the digests that the last list has left out, because they cannot be stored.
	leftOut map[uint64]bool
}

func (r *verification) run(ctx context.Context) error {
	if r.f.Objects != nil {
		return r.reportVerified(ctx)
	}
	restored, err := r.isRestored(ctx)
	if err != nil {
		return err
	}
	if restored {
		return r.v.restored(r.f, r.began)
	}
	if err := r.compareObjects(ctx); err != nil {
		return err
	}
	return r.reportVerified(ctx)
}

// maxComparisons is how often the sums are compared in one verification, while too many buckets are suspect
// to be examined.
const maxComparisons = 6

// errTooBusy reports that a verification goes on in its next turn.
var errTooBusy = errors.New("more has changed than can be examined at once")

// compareObjects compares the feed with its cluster. If it finds drift, it makes the feed be read anew and
// returns errDrift.
func (r *verification) compareObjects(ctx context.Context) error {
	suspects := r.turn.suspectsSince(r.snapshots)
	for n, before := 1, 0; ; n++ {
		c, err := r.compareSums(ctx)
		if err != nil {
			return err
		}
		buckets := suspects.Compare(c.bits, c.differing)
		isPromising := before == 0 || len(buckets) < before*3/4
		before = len(buckets)
		if len(buckets) == 0 {
			break
		}
		if !verify.CanExamine(c.bits, c.objects, len(buckets)) && n < maxComparisons && isPromising {
			continue
		}
		examined, err := r.examine(ctx, c, buckets)
		if err != nil {
			return err
		}
		if !suspects.Examined(examined) {
			return errTooBusy
		}
		break
	}
	*suspects = verify.Suspects{}
	return nil
}

// suspectsSince returns what is suspect since a snapshot.
func (t *feedTurn) suspectsSince(snapshots int) *verify.Suspects {
	if t.suspectsOf != snapshots {
		t.suspects, t.suspectsOf = verify.Suspects{}, snapshots
	}
	return &t.suspects
}

// isRestored reports whether the cluster is at an earlier version than the feed. The feed itself may
// not notice: an API server sends nothing to a watch from a version that it does not know yet, and
// ends it as usual.
func (r *verification) isRestored(ctx context.Context) (bool, error) {
	mark, _ := r.f.mark()
	q := r.f.query()
	q.Set("limit", "1") // without a resourceVersion, so the answer is not of an outdated cache
	p, err := r.readPage(ctx, q, nil, func([]byte) error { return nil })
	if err != nil {
		return false, err
	}
	return isOlder(vedette.Mark(p.Version), mark), r.check()
}

// check returns an error if the feed was read anew since the verification began.
func (r *verification) check() error {
	if _, snapshots := r.f.mark(); snapshots != r.snapshots {
		return errReadAnew
	}
	return nil
}

// comparison is which sums of a feed differ.
type comparison struct {
	bits, objects int
	differing     []uint32
}

// compareSums compares the sums of the buckets. The list may be from a cache that is behind: equal is
// equal, and what differs is examined.
func (r *verification) compareSums(ctx context.Context) (comparison, error) {
	sums := &verify.Sums{}
	if _, err := r.list(ctx, "0", func(digest uint64, _ redact.ObjectMeta) error { sums.Add(digest); return nil }); err != nil {
		return comparison{}, err
	}
	r.turn.leftOut = r.leftOut // without objects that have changed or are gone
	request := sums.Request()
	answer, err := r.compare(ctx, request)
	return comparison{request.Bits, sums.Count(), answer.Buckets}, err
}

func (r *verification) compare(ctx context.Context, request verify.Request) (verify.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, compareTimeout)
	defer cancel()
	answer, err := r.v.comparer.Compare(ctx, r.f.Feed, request)
	if err == nil {
		err = r.check()
	}
	return answer, err
}

// examine examines buckets, see package verify, and returns those that have no drift. If it finds drift, it
// makes the feed be read anew and returns errDrift.
func (r *verification) examine(ctx context.Context, c comparison, suspects []uint32) (examined []uint32, err error) {
	if err := acquirePermit(ctx, r.v.w.cfg.Limiter.examinations); err != nil {
		return nil, err
	}
	defer func() { <-r.v.w.cfg.Limiter.examinations }()
	x := verify.NewExamination(c.bits, c.objects, suspects)
	examined = x.Request().Buckets
	more, _, err := r.round(ctx, x, "0")
	if err != nil || !more {
		return examined, err
	}
	more, names, err := r.round(ctx, x, "") // not from a cache, so it is not older than the first answer
	if err != nil || !more {
		return examined, err
	}
	return examined, r.handleDrift(x.Drift(names))
}

// round lists the objects, waits until the feed has reached the list, and compares.
func (r *verification) round(ctx context.Context, x *verify.Examination, version string) (more bool, names []string, err error) {
	listed, err := r.list(ctx, version, func(digest uint64, m redact.ObjectMeta) error { return x.Add(digest, m.Namespace, m.Name) })
	if err != nil {
		return false, nil, err
	}
	if err := r.f.awaitVersion(ctx, listed, r.v.w.cfg.IdleTimeout); err != nil {
		return false, nil, err
	}
	answer, err := r.compare(ctx, x.Request())
	if err != nil {
		return false, nil, err
	}
	more, err = x.Compare(answer.Objects)
	return more, answer.Names, err
}

// maxSettles is how often a feed is read anew before its verification gives up for Config.VerifyInterval.
const maxSettles = 3

// handleDrift makes the feed be read anew and returns errDrift. The drift is reported when that has
// helped. What has not changed by it cannot be stored, and is not drift.
func (r *verification) handleDrift(found verify.Drift) error {
	t := r.turn
	for _, digest := range found.TakeLeftOver(r.leftOut) { // they exist, so they are stored by now
		delete(t.leftOut, digest)
	}
	if t.settled != nil {
		rest, unstorable := found.Without(t.settled)
		t.leaveOut(unstorable)
		t.settled.Remove(unstorable)
		found = rest
	}
	if found.IsEmpty() {
		return nil
	}
	count := found.Count()
	r.v.w.cfg.Log.Warn("the store differs from the cluster, reading the feed anew", "cluster", r.v.w.c.Host(), "feed", r.f.Feed.String(),
		"missing", count.Missing, "left_over", count.LeftOver, "changed", count.Changed, "examples", found.Examples)
	if t.settles >= maxSettles && time.Since(t.settledAt) < r.v.interval {
		return errNotSettled
	}
	t.settle(&found)
	r.f.step(lifecycle.AnewWanted{})
	return errDrift
}

// leaveOut remembers objects that cannot be stored.
func (t *feedTurn) leaveOut(digests []uint64) {
	for _, digest := range digests {
		if len(t.leftOut) < maxLeftOut {
			t.leftOut[digest] = true
		}
	}
}

// settle remembers why the feed is read anew.
func (t *feedTurn) settle(found *verify.Drift) {
	if t.settled != nil {
		t.report.Add(t.settled.Count())
	}
	t.settled, t.report.Examples = found, found.Examples
	t.settles, t.settledAt = t.settles%maxSettles+1, time.Now()
}

// reportVerified reports that the feed equals its cluster, and what was different before.
func (r *verification) reportVerified(ctx context.Context) error {
	t := r.turn
	t.report.Restored = r.v.takeRestored(t) || t.report.Restored
	report := t.report
	if t.settled != nil {
		report.Add(t.settled.Count())
	}
	if report.Total() == 0 {
		report.Examples = nil
	}
	if err := r.v.comparer.Report(ctx, r.f.Feed, report); err != nil {
		return err
	}
	t.settled = nil
	t.settles = 0
	t.report = VerifyReport{}
	return nil
}

// maxListTime bounds a list, whose continue tokens may never end, with the wait for its permit.
const maxListTime = 10 * time.Minute

// list reads the metadata of all objects of the feed from a version on: "0" for any, "" for the
// latest. It returns the version of the list.
func (r *verification) list(ctx context.Context, version string, add func(digest uint64, m redact.ObjectMeta) error) (vedette.Mark, error) {
	ctx, cancel := context.WithTimeout(ctx, maxListTime)
	defer cancel()
	r.leftOut = map[uint64]bool{}
	var listed vedette.Mark
	err := r.withPermit(ctx, func(ctx context.Context, permit *snapshotPermit) (err error) {
		listed, err = r.readPages(ctx, version, permit, add)
		return err
	})
	if err == nil {
		err = r.check()
	}
	return listed, err
}

// withPermit waits for a permit and lists with it. Verifications wait for everybody else, and a
// list that has to yield fails, because some of its objects may be added already.
func (r *verification) withPermit(ctx context.Context, list func(ctx context.Context, permit *snapshotPermit) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	permit, err := r.v.w.acquireVerificationPermit(ctx, func() { cancel(errYield) })
	if err != nil {
		return err
	}
	err = list(ctx, permit)
	permit.release(err == nil)
	return err
}

func (r *verification) readPages(ctx context.Context, version string, permit *snapshotPermit,
	add func(digest uint64, m redact.ObjectMeta) error) (vedette.Mark, error) {
	q := r.f.query()
	q.Set("limit", strconv.Itoa(defaultPageSize)) // a list from a cache has one page
	if version != "" {
		q.Set("resourceVersion", version)
	}
	var listed vedette.Mark
	for {
		p, err := r.readPage(ctx, q, permit, func(raw []byte) error { return r.addObject(raw, add) })
		if err != nil {
			return "", err
		}
		if listed == "" {
			listed = vedette.Mark(p.Version)
		}
		if p.Continue == "" {
			return listed, nil
		}
		if p.Continue == q.Get("continue") {
			return "", kube.ErrSamePage
		}
		q.Del("resourceVersion") // the token has it
		q.Set("continue", p.Continue)
	}
}

// addObject adds an object, unless the feed leaves it out.
func (r *verification) addObject(raw []byte, add func(digest uint64, m redact.ObjectMeta) error) error {
	if raw == nil {
		return nil
	}
	if r.f.metadataOnly {
		var err error
		if raw, err = jsonstream.OnlyMetadata(raw, r.f.typeMeta); err != nil {
			return err
		}
	}
	if t, err := r.f.filterManaged(Item, raw); err != nil || t == 0 {
		return err
	}
	m, err := redact.ReadMetadata(raw)
	if err != nil {
		return fmt.Errorf("read the metadata of an object: %w", err)
	}
	digest := vedette.Digest(m.Namespace, m.Name, m.UID, m.ResourceVersion)
	if r.turn.leftOut[digest] {
		r.leftOut[digest] = true
		return nil
	}
	return add(digest, m)
}

func (r *verification) readPage(ctx context.Context, q url.Values, permit *snapshotPermit,
	item func(raw []byte) error) (jsonstream.ListMeta, error) {
	f, w := r.f, r.v.w
	accept := kube.AcceptMetadataList
	if !f.metadataOnly {
		accept += "," + kube.AcceptJSON // some aggregated API servers know no metadata
	}
	timeouts := w.c.Timeouts()
	if permit != nil {
		timeouts.Waiter = permit
		permit.startPage()
	}
	resp, err := f.get(ctx, timeouts, kube.GetRequest{Path: f.ListPath(), Query: q, Accept: accept})
	if err != nil {
		return jsonstream.ListMeta{}, err
	}
	defer resp.Body.Close()
	s := f.newPermittedSplitter(ctx, resp.Body, permit)
	defer s.Close()
	return s.List(f.typeMeta, item)
}
