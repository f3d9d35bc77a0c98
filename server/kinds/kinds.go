// Package kinds keeps which kinds the clusters of accounts serve, beyond those that agents report.
//
// An agent discovers its cluster anyway, so that asking it costs its API server a comparison of an ETag. Answers that are
// equal are kept once, and so are equal kinds of answers that differ. What is kept belongs to one cluster: another one behind
// the same account has to answer for itself.
package kinds

import (
	"cmp"
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/internal/fair"
	"github.com/vedette-io/vedette/server/readlimit"
)

// Catalogue is what a cluster serves. It is immutable, and shared by the accounts whose clusters serve the same.
type Catalogue struct {
	kinds []*servedKind // in the order of the cluster's groups
	// UnknownGroups are the groups whose own API servers do not respond. The cluster may serve more kinds of them.
	UnknownGroups []string

	digest   digest
	size     int64
	accounts int // that have it in the cache
}

type digest [sha256.Size]byte

// servedKind is a kind that catalogues share. Cache.mu guards the number of them.
type servedKind struct {
	vedette.ServedKind
	digest     digest
	size       int64
	catalogues int
}

func (k *servedKind) resource() (vedette.Resource, []string) { return k.Resource, k.Versions }

// Kinds returns the kinds in the order of the cluster's groups.
func (c *Catalogue) Kinds() iter.Seq[vedette.ServedKind] {
	return func(yield func(vedette.ServedKind) bool) {
		for _, k := range c.kinds {
			if !yield(k.ServedKind) {
				return
			}
		}
	}
}

// Match is what a name means in a cluster.
type Match struct {
	Kinds      []vedette.ServedKind
	Version    string // that the name contains; empty if it contains none
	IsCategory bool   // the name means all of the kinds, and not the first of them
}

// Match returns what a name means in the cluster. The kind is in the version that the name contains.
func (c *Catalogue) Match(name string) Match {
	found := vedette.FindKinds(c.kinds, name, (*servedKind).resource)
	match := Match{Version: found.Version}
	for _, k := range found.Kinds {
		kind := k.ServedKind
		kind.Version = cmp.Or(found.Version, kind.Version)
		match.Kinds = append(match.Kinds, kind)
	}
	if len(match.Kinds) > 0 {
		return match
	}
	for _, k := range c.kinds {
		if k.IsListedIn(name) {
			match.Kinds, match.IsCategory = append(match.Kinds, k.ServedKind), true
		}
	}
	return match
}

// MayServe reports whether a kind that is missing may be of a group whose API server does not respond.
func (c *Catalogue) MayServe(name string) bool {
	_, group, qualified := strings.Cut(name, ".")
	return slices.ContainsFunc(c.UnknownGroups, func(g string) bool {
		return !qualified || strings.EqualFold(g, group) || strings.HasSuffix(strings.ToLower(group), "."+strings.ToLower(g))
	})
}

// Config configures a Cache.
type Config struct {
	// Execute executes an operation, as dispatch.Dispatcher does.
	Execute func(ctx context.Context, op vedette.Operation) vedette.Outcome
	// Bytes is the maximum size of what is kept; 0 means 32 MiB, enough for 500 clusters with a hundred kinds of their
	// own each.
	Bytes int64
}

const (
	defaultBytes = 32 << 20
	// Timeout bounds how long a cluster may take to answer. An agent that has discovered it before takes milliseconds.
	Timeout = 5 * time.Second
	// maxWait also bounds the wait for a turn to ask.
	maxWait = 30 * time.Second
	// failureAge is how long an account that did not answer is not asked again, so that one lost cluster does not delay each
	// request.
	failureAge = 10 * time.Second
	// maxResultBytes bounds one answer. Ten thousand kinds, the most that an agent reports, have about 3 MiB.
	maxResultBytes = 6 << 20
	// freeResultBytes is what an answer may have without being counted: a cluster with a thousand kinds has 300 KiB.
	freeResultBytes = 512 << 10
	maxDecoded      = 32 << 20
	// inFlight is how many accounts are asked at once, by all callers and by one.
	inFlight, inFlightOfCaller = 64, 32
)

// Cache keeps catalogues for a bounded time, within a bounded size. It is safe for concurrent use.
type Cache struct {
	cfg    Config
	group  singleflight.Group
	asking *fair.Line // of accounts, by caller
	decode *fair.Line // of answers, one at a time

	mu         sync.Mutex
	entries    map[vedette.AccountName]*entry
	catalogues map[digest]*Catalogue
	kinds      map[digest]*servedKind
	used       *list.List // accounts, the one that was used last in front
	size       int64
}

// entry is what is known of one account. It is replaced, not changed, but for its place.
type entry struct {
	account   vedette.AccountName
	cluster   vedette.Cluster
	catalogue *Catalogue // nil after a failure
	err       error
	fetchedAt time.Time
	place     *list.Element
}

// New returns an empty Cache.
func New(cfg Config) *Cache {
	if cfg.Bytes <= 0 {
		cfg.Bytes = defaultBytes
	}
	return &Cache{cfg: cfg, entries: map[vedette.AccountName]*entry{}, catalogues: map[digest]*Catalogue{},
		kinds: map[digest]*servedKind{}, used: list.New(),
		asking: fair.New(fair.Config{Capacity: inFlight, Share: inFlightOfCaller}), decode: fair.New(fair.Config{Capacity: 1, Share: 1})}
}

// Request names a cluster, and who asks.
type Request struct {
	Account   vedette.AccountName
	Cluster   vedette.Cluster   // that the account has; another one does not answer
	Caller    string            // whose share of the questions under way is used
	Requester vedette.Requester // for the agent's log
}

// Get returns the catalogue of a cluster as it was at most maxAge ago. The error says why it is not known.
func (c *Cache) Get(ctx context.Context, r Request, maxAge time.Duration) (*Catalogue, error) {
	notBefore := time.Now().Add(-maxAge)
	for {
		if e := c.cached(r, notBefore); e != nil {
			return e.catalogue, e.err
		}
		// Only questions of one caller are joined: a caller who asks much waits for its turn, and others must not wait with it.
		done := c.group.DoChan(string(r.Account)+"\x00"+r.Caller, func() (any, error) {
			if e := c.cached(r, notBefore); e != nil { // another question has ended in the meantime
				return e, nil
			}
			return c.fetch(context.WithoutCancel(ctx), r)
		})
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case result := <-done:
			if result.Err != nil {
				return nil, result.Err
			}
			// A question that was under way may be older, or about another cluster.
			if e := result.Val.(*entry); e.isOf(r.Cluster) && (e.err != nil || !e.fetchedAt.Before(notBefore)) {
				return e.catalogue, e.err
			}
		}
	}
}

// isOf reports whether an entry is about a cluster. A cluster without uid and certificate is not known to be itself, but
// agents refuse operations for it if it is not.
func (e *entry) isOf(cluster vedette.Cluster) bool {
	return e.cluster == cluster || e.cluster.Same(cluster)
}

// cached returns what is known of the cluster if it is from after notBefore, or else nil. A failure is known for longer.
func (c *Cache) cached(r Request, notBefore time.Time) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[r.Account]
	switch {
	case e == nil || !e.isOf(r.Cluster):
		return nil
	case e.err != nil && time.Since(e.fetchedAt) < failureAge:
	case e.err != nil || e.fetchedAt.Before(notBefore):
		return nil
	}
	c.used.MoveToFront(e.place)
	return e
}

// fetch asks the agent, and keeps what it answers. The error is not nil if it could not ask.
func (c *Cache) fetch(ctx context.Context, r Request) (*entry, error) {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	turn, err := c.asking.Acquire(ctx, r.Caller, 1)
	if err != nil {
		return nil, vedette.Errorf(vedette.Unavailable, "too many clusters are asked for their kinds at once: %w", err)
	}
	defer turn.Release()
	ctx, cancel = context.WithTimeout(ctx, Timeout)
	defer cancel()
	e := &entry{account: r.Account, cluster: r.Cluster, fetchedAt: time.Now()}
	if e.catalogue, e.err = c.ask(ctx, r); errors.Is(e.err, errNoMemory) { // others have their own
		return nil, e.err
	}
	c.keep(e)
	return e, nil
}

func (c *Cache) ask(ctx context.Context, r Request) (*Catalogue, error) {
	deadline, _ := ctx.Deadline()
	// The answer is gone before the request ends, so that the request does not hold its memory.
	out := c.cfg.Execute(readlimit.WithoutAnswers(ctx), vedette.Operation{Account: r.Account, Cluster: r.Cluster, Args: vedette.DiscoverArgs{},
		Deadline: deadline, Requester: r.Requester, Origin: "kinds"})
	switch size := len(out.Result); {
	case out.State != vedette.Done:
		return nil, vedette.Errorf(vedette.Unavailable, "the kinds of the cluster cannot be read: %s", out.Message)
	case size > maxResultBytes:
		return nil, vedette.Errorf(vedette.Unavailable, "the agent's answer about the kinds of the cluster has %d bytes, more than the limit of %d",
			size, maxResultBytes)
	case size > freeResultBytes && !readlimit.Hold(ctx, int64(size)):
		return nil, errNoMemory
	}
	sum := digest(sha256.Sum256(out.Result))
	c.mu.Lock()
	known := c.catalogues[sum]
	c.mu.Unlock()
	if known != nil {
		return known, nil
	}
	turn, err := c.decode.Acquire(ctx, "", 1)
	if err != nil {
		return nil, vedette.Errorf(vedette.Unavailable, "the kinds of the cluster cannot be read in time: %w", err)
	}
	defer turn.Release()
	return c.decodeAnswer(out.Result, sum)
}

var errNoMemory = vedette.Errorf(vedette.Unavailable,
	"the server has no memory for the kinds of the cluster: try again when other requests have ended")

// answer is the Result of a discover operation.
type answer struct {
	Kinds         []json.RawMessage `json:"kinds"`
	UnknownGroups []string          `json:"unknownGroups"`
}

type answeredKind struct {
	Kind       string   `json:"kind"`
	Group      string   `json:"group"`
	Version    string   `json:"version"`
	Versions   []string `json:"versions"`
	Plural     string   `json:"plural"`
	Singular   string   `json:"singular"`
	ShortNames []string `json:"shortNames"`
	Namespaced bool     `json:"namespaced"`
	Categories []string `json:"categories"`
	Verbs      []string `json:"verbs"`
}

// decodeAnswer decodes the kinds that no other cluster serves, and takes the others from these.
func (c *Cache) decodeAnswer(raw []byte, sum digest) (*Catalogue, error) {
	var a answer
	if err := exactjson.Unmarshal(raw, &a, exactjson.Limits{Bytes: maxDecoded}); err != nil {
		return nil, invalidAnswer(err)
	}
	cat := &Catalogue{UnknownGroups: a.UnknownGroups, digest: sum, size: int64(len(a.Kinds)) * sizeOfReference}
	for _, group := range a.UnknownGroups {
		cat.size += sizeOfText + int64(len(group))
	}
	for _, raw := range a.Kinds {
		sum := digest(sha256.Sum256(raw))
		c.mu.Lock()
		k := c.kinds[sum]
		c.mu.Unlock()
		if k == nil {
			var err error
			if k, err = decodeKind(raw, sum); err != nil {
				return nil, invalidAnswer(err)
			}
		}
		cat.kinds = append(cat.kinds, k)
	}
	return cat, nil
}

func invalidAnswer(err error) error {
	return vedette.Errorf(vedette.Unavailable, "the agent's answer about the kinds of the cluster is invalid: %w", err)
}

func decodeKind(raw []byte, sum digest) (*servedKind, error) {
	var k answeredKind
	if err := exactjson.Unmarshal(raw, &k, exactjson.Limits{Bytes: maxDecoded}); err != nil {
		return nil, fmt.Errorf("read a kind: %w", err)
	}
	if k.Kind == "" || k.Plural == "" || k.Version == "" {
		return nil, errors.New("a kind has no name")
	}
	if len(k.Versions) == 0 { // an agent of an earlier version
		k.Versions = []string{k.Version}
	}
	return &servedKind{digest: sum, ServedKind: vedette.ServedKind{
		Resource: vedette.Resource{Kind: vedette.Kind{Group: k.Group, Name: k.Kind}, Version: k.Version, Plural: k.Plural, Singular: k.Singular,
			ShortNames: k.ShortNames, Namespaced: k.Namespaced},
		Versions: k.Versions, Categories: k.Categories, Verbs: k.Verbs},
		size: sizeOfKind + int64(len(raw)) + sizeOfText*int64(len(k.Versions)+len(k.ShortNames)+len(k.Categories)+len(k.Verbs))}, nil
}

// What a kind takes in memory besides its texts, what each text of a list takes, and what a catalogue takes for a kind, in bytes.
const (
	sizeOfKind      = 400
	sizeOfText      = 16
	sizeOfReference = 8
)

// keep replaces what is known of an account, and drops what was not used for the longest time.
func (c *Cache) keep(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeLocked(c.entries[e.account])
	if e.catalogue != nil {
		known := c.catalogues[e.catalogue.digest]
		if known == nil {
			known = c.addLocked(e.catalogue)
		}
		e.catalogue = known
		known.accounts++
	}
	c.size += sizeOfEntry
	e.place = c.used.PushFront(e)
	c.entries[e.account] = e
	for c.size > c.cfg.Bytes && c.used.Len() > 1 {
		c.removeLocked(c.used.Back().Value.(*entry))
	}
}

// sizeOfEntry is what an account takes without its catalogue, in bytes.
const sizeOfEntry = 1 << 10

// addLocked adds a catalogue that is not in the cache, and returns the one that is: with kinds that other catalogues have, too. It is
// a copy, because a catalogue that was dropped meanwhile may still have readers.
func (c *Cache) addLocked(cat *Catalogue) *Catalogue {
	added := &Catalogue{kinds: make([]*servedKind, len(cat.kinds)), UnknownGroups: cat.UnknownGroups, digest: cat.digest, size: cat.size}
	c.catalogues[added.digest] = added
	c.size += added.size
	for n, k := range cat.kinds {
		known := c.kinds[k.digest]
		if known == nil {
			known = k
			c.kinds[k.digest] = k
			c.size += k.size
		}
		added.kinds[n] = known
		known.catalogues++
	}
	return added
}

func (c *Cache) removeLocked(e *entry) {
	if e == nil {
		return
	}
	c.used.Remove(e.place)
	delete(c.entries, e.account)
	c.size -= sizeOfEntry
	if e.catalogue == nil {
		return
	}
	e.catalogue.accounts--
	if e.catalogue.accounts == 0 {
		delete(c.catalogues, e.catalogue.digest)
		c.size -= e.catalogue.size
		for _, k := range e.catalogue.kinds {
			k.catalogues--
			if k.catalogues == 0 {
				delete(c.kinds, k.digest)
				c.size -= k.size
			}
		}
	}
}
