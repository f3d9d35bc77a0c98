package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/singleflight"

	"github.com/vedette-io/vedette/internal/fair"
	"github.com/vedette-io/vedette/server/store/lastanswers"
	"github.com/vedette-io/vedette/server/upstream/merging"
	"github.com/vedette-io/vedette/server/upstream/spool"
)

// resource is a list of the upstream Clouddriver whose last complete answer is kept.
type resource struct {
	name  string // identifies it in metrics and in the database
	path  string
	query string
}

// The resources. Both forms of a list are kept, because neither can be made of the other. All are read in the
// background: the first caller may come while the upstream Clouddriver does not answer. The index is built from the expanded lists.
var (
	accountNames   = &resource{name: "credentials", path: "/credentials"}
	accountDetails = &resource{name: "credentials expanded", path: "/credentials", query: "expand=true"}
	// With restricted=false the answer is the same for all callers.
	applicationNames   = &resource{name: "applications", path: "/applications", query: "restricted=false&expand=false"}
	applicationDetails = &resource{name: "applications expanded", path: "/applications", query: "restricted=false&expand=true"}
	artifactAccounts   = &resource{name: "artifact accounts", path: "/artifacts/credentials"}
	stages             = &resource{name: "stages", path: "/features/stages"}

	resources = []*resource{accountNames, accountDetails, applicationNames, applicationDetails, artifactAccounts, stages}
)

// resourceOf returns the resource that a request asks for, or nil if its answer depends on more than that.
func resourceOf(r *http.Request) *resource {
	query := r.URL.Query()
	for _, values := range query {
		if len(values) > 1 {
			return nil // Clouddriver decides what that means
		}
	}
	switch strings.TrimSuffix(r.URL.Path, "/") {
	case accountNames.path:
		return byExpand(query.Get("expand"), "false", accountNames, accountDetails)
	case applicationNames.path:
		if query.Get("restricted") == "false" {
			return byExpand(query.Get("expand"), "true", applicationNames, applicationDetails)
		}
	case artifactAccounts.path:
		return artifactAccounts
	case stages.path:
		return stages
	}
	return nil
}

func byExpand(expand, byDefault string, short, long *resource) *resource {
	if expand == "" {
		expand = byDefault
	}
	return map[string]*resource{"false": short, "true": long}[expand]
}

// answerStore keeps answers over restarts.
type answerStore interface {
	UpstreamAnswer(ctx context.Context, name string) (lastanswers.Answer, error)
	SetUpstreamAnswer(ctx context.Context, a lastanswers.Answer) error
	ConfirmUpstreamAnswer(ctx context.Context, name string, fetched time.Time) error
}

// kept is a complete answer. It is not changed.
type kept struct {
	fetched time.Time
	isLast  bool         // that it was not the current one when it was read
	spool   *spool.Spool // the elements of the list, with commas between them
}

// document returns the list. A caller may still read an answer that has been replaced.
func (k *kept) document() io.Reader {
	return io.MultiReader(strings.NewReader("["), k.spool.Reader(), strings.NewReader("]"))
}

// resourceState is what is known about one resource.
type resourceState struct {
	kept      *kept         // nil before the first complete answer
	saved     uint64        // digest of what is in the database
	isFailing bool          // since the last try, which nobody needs to wait for again
	reason    string        // of the failure
	tried     time.Time     // when the last try ended
	took      time.Duration // by the last try that succeeded
}

// isCurrent reports whether the last complete answer counts as the current one.
func (s *resourceState) isCurrent() bool {
	return s.kept != nil && !s.isFailing && time.Since(s.tried) < freshFor
}

// answers keeps the last complete answers, and the index that is made of them. It is safe for concurrent use.
type answers struct {
	client *client
	index  *index
	store  answerStore
	log    *slog.Logger

	background chan struct{} // one for each request in the background

	flights singleflight.Group
	mu      sync.Mutex
	states  map[*resource]*resourceState
}

const (
	// keptBytes bounds what one answer and what the index has of it take: 10 MiB, because one grant may take five eighths of it. While an
	// answer is being replaced, both are there.
	keptBytes = 16 << 20
	// maxBackground bounds the requests in the background.
	maxBackground = 4
	// maxKeptDocument bounds one answer before it is compressed.
	maxKeptDocument = 256 << 20
	// freshFor is for how long after its end an answer counts as the current one, so that many callers cause one request.
	freshFor = time.Second
	// patience is how long a caller waits for a new answer if there is a last one.
	patience = 2 * time.Second
	// retryInterval is the shortest time between two tries of which the first failed.
	retryInterval = time.Second
)

func newAnswers(c *client, s answerStore) *answers {
	a := &answers{
		client: c, index: newIndex(c.RefreshInterval, c.MaxStale, c.stats.isFailing), store: s, log: c.Log,
		background: make(chan struct{}, maxBackground), states: map[*resource]*resourceState{},
	}
	for _, r := range resources {
		a.states[r] = &resourceState{}
	}
	return a
}

// last is the upstream Clouddriver's part of an answer.
type last struct {
	kept   *kept  // nil if there is none
	reason string // why it is not the current one; empty if it is
}

// latest returns the current answer of a resource, or else its last complete one.
func (a *answers) latest(ctx context.Context, r *resource) last {
	a.mu.Lock()
	s := *a.states[r]
	a.mu.Unlock()
	if s.isCurrent() {
		return last{kept: s.kept}
	}
	if s.isFailing && time.Since(s.tried) < retryInterval {
		return a.fallBack(s.kept, s.reason)
	}
	if s.kept != nil && time.Since(s.kept.fetched) > a.client.MaxStale {
		s.kept = nil // worth no less a wait than none
	}
	result := a.flights.DoChan(r.name, func() (any, error) {
		if now := a.state(r); now.isCurrent() { // since this caller has looked
			return "", nil
		}
		return a.fetch(context.WithoutCancel(ctx), r), nil
	})
	var timeout <-chan time.Time
	if s.kept != nil {
		wait := min(patience, a.client.MergeTimeout/4) // what follows takes time, too
		if s.isFailing || s.took > patience {          // a wait would end without an answer
			wait = 0
		}
		timer := time.NewTimer(wait)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case done := <-result:
		if reason := done.Val.(string); reason != "" {
			return a.fallBack(a.state(r).kept, reason)
		}
		return last{kept: a.state(r).kept}
	case <-timeout:
		a.fail(r, reasonTimeout)
		return a.fallBack(s.kept, reasonTimeout)
	case <-ctx.Done():
		return a.fallBack(s.kept, reasonTimeout)
	}
}

func (a *answers) state(r *resource) resourceState {
	a.mu.Lock()
	defer a.mu.Unlock()
	return *a.states[r]
}

// fallBack returns an answer unless it is too old.
func (a *answers) fallBack(k *kept, reason string) last {
	if k == nil || time.Since(k.fetched) > a.client.MaxStale {
		return last{reason: reason}
	}
	return last{k, reason}
}

// fail notes that a resource cannot be read now.
func (a *answers) fail(r *resource, reason string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.states[r]
	s.isFailing = true
	s.reason = reason
	s.tried = time.Now()
}

// fetch reads a resource, and keeps its answer if that is complete. It returns the reason if it is not.
func (a *answers) fetch(ctx context.Context, r *resource) string {
	ctx, cancel := context.WithTimeout(ctx, a.client.Timeout) // callers wait for less time
	defer cancel()
	began := time.Now()
	k, err := a.read(ctx, r)
	if err != nil {
		reason := a.client.reasonOfError(ctx, err)
		a.fail(r, reason)
		return reason
	}
	a.replace(r, k, time.Since(began))
	return ""
}

// replace makes an answer the last complete one.
func (a *answers) replace(r *resource, k *kept, took time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.states[r]
	if s.kept != nil && k.fetched.Before(s.kept.fetched) {
		return // what was stored is older
	}
	s.kept = k
	s.isFailing = false
	s.reason = ""
	s.tried = time.Now()
	s.took = took
}

func (a *answers) read(ctx context.Context, r *resource) (*kept, error) {
	began := time.Now() // what changes meanwhile may be missing
	t := a.client.open(ctx, http.Header{}, &url.URL{Path: r.path, RawQuery: r.query})
	defer t.close()
	switch {
	case t.reason != "":
		return nil, reasonError(t.reason)
	case t.age > a.client.MaxStale:
		return nil, reasonError(reasonIncomplete)
	}
	k, err := a.keep(ctx, r, t.document, began.Add(-t.age))
	if err == nil {
		k.isLast = t.isLast
	}
	return k, err
}

func (a *answers) keep(ctx context.Context, r *resource, list io.Reader, fetched time.Time) (*kept, error) {
	// A memory of its own: nothing that is kept may wait for, or hold up, anything else.
	grant, err := spool.NewMemory(keptBytes).Acquire(ctx, r.name, 1)
	if err != nil {
		return nil, err
	}
	if now := time.Now(); fetched.After(now) {
		fetched = now // the clock was wrong
	}
	k := &kept{fetched: fetched, spool: spool.New(ctx, grant)}
	return k, a.scan(ctx, r, list, k, grant)
}

// scan writes the elements of a list to a kept answer, and makes the index of them.
func (a *answers) scan(ctx context.Context, r *resource, list io.Reader, k *kept, grant *spool.Grant) error {
	var names []string
	applications := map[string][]string{}
	read := &window{ctx: ctx, body: list, grant: grant, limit: maxKeptDocument}
	defer read.release()
	parts, interned := &merging.Merge{}, map[string]string{}
	err := merging.Scan(read, '[', func(_ string, element []byte) error {
		defer read.next()
		name, err := parts.StringMember(element, "name")
		switch {
		case err != nil:
			return err
		case name == "":
			return errors.New("got an element without a name")
		}
		if err := parts.Count(1); err != nil {
			return err
		}
		if err := grant.Grow(ctx, indexCost+2*int64(len(name))); err != nil {
			return err
		}
		switch {
		case r == accountDetails || r == accountNames:
			names = append(names, name)
		case r == applicationDetails && len(name) <= maxNameBytes:
			count := parts.Elements
			if err := addAccountsOf(parts, applications, interned, name, element); err != nil {
				return err
			}
			if err := grant.Grow(ctx, indexCost*int64(parts.Elements-count)); err != nil {
				return err
			}
		}
		if k.spool.Size() > 0 {
			if _, err := io.WriteString(k.spool, ","); err != nil {
				return err
			}
		}
		_, err = k.spool.Write(element)
		return err
	})
	if err != nil {
		return err
	}
	switch r {
	case accountDetails, accountNames:
		a.index.setAccounts(names, k.fetched)
	case applicationDetails:
		a.index.setApplications(applications, k.fetched)
	}
	return nil
}

// indexCost is what an entry of the index takes beside its name.
const indexCost = 100

// addAccountsOf adds the accounts in which an application has clusters. Clouddriver has an entry for each provider.
func addAccountsOf(m *merging.Merge, applications map[string][]string, interned map[string]string, name string, element []byte) error {
	name = strings.ToLower(name)
	accounts := applications[name]
	clusters, err := m.Member(element, "clusterNames")
	if err != nil {
		return err
	}
	if jsontext.Value(clusters).Kind() == '{' {
		err = m.EachMember(clusters, func(account string, _ []byte) error {
			if _, ok := interned[account]; !ok && len(account) <= maxNameBytes {
				interned[account] = account
			}
			accounts = append(accounts, interned[account]) // a name that is too long is that of no agent's account
			return nil
		})
	}
	applications[name] = accounts
	return err
}

// storedName returns the name of a resource in the database, which also tells one upstream Clouddriver from another.
func (a *answers) storedName(r *resource) string {
	return fmt.Sprintf("%016x %s", xxhash.Sum64String(a.client.BaseURL), r.name)
}

// load reads the answers that were kept before this server started.
func (a *answers) load(ctx context.Context) error {
	for _, r := range resources {
		stored, err := a.store.UpstreamAnswer(ctx, a.storedName(r))
		if err != nil {
			return err
		}
		if len(stored.Parts) == 0 || a.state(r).kept != nil {
			continue
		}
		k, err := a.keep(ctx, r, spool.Decode(stored.Parts), stored.Fetched)
		if err != nil {
			a.log.Warn("the stored last answer of the upstream Clouddriver cannot be used, and will be replaced", "answer", r.name, "error", err)
			continue
		}
		a.replace(r, k, 0)
		a.mu.Lock()
		a.states[r].tried = time.Time{} // an answer of before is not the current one
		a.states[r].saved = k.spool.Sum()
		a.mu.Unlock()
	}
	return nil
}

// run loads what was kept, and reads all resources again and again until ctx ends, each by itself, so that none waits for another one's
// timeout.
func (a *answers) run(ctx context.Context) error {
	if err := a.load(ctx); err != nil && ctx.Err() == nil {
		a.log.Warn("the stored last answers of the upstream Clouddriver cannot be read: until it answers, its accounts are missing", "error", err)
	}
	var group sync.WaitGroup
	for _, r := range resources {
		group.Go(func() { a.refresh(ctx, r) })
	}
	group.Wait()
	return nil
}

// refresh reads one resource again and again.
func (a *answers) refresh(ctx context.Context, r *resource) {
	tick := time.NewTicker(a.client.RefreshInterval)
	defer tick.Stop()
	for {
		select {
		case <-a.flights.DoChan(r.name, func() (any, error) { return a.fetch(ctx, r), nil }):
		case <-ctx.Done():
			return
		}
		a.save(ctx, r)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// save stores what has changed of a resource.
func (a *answers) save(ctx context.Context, r *resource) {
	s := a.state(r)
	if s.kept == nil {
		return
	}
	var err error
	if sum := s.kept.spool.Sum(); sum == s.saved {
		err = a.store.ConfirmUpstreamAnswer(ctx, a.storedName(r), s.kept.fetched)
	} else if err = a.store.SetUpstreamAnswer(ctx, s.kept.stored(a.storedName(r))); err == nil {
		a.mu.Lock()
		a.states[r].saved = sum
		a.mu.Unlock()
	}
	if err != nil && ctx.Err() == nil {
		a.log.Warn("retrying to store the last answer of the upstream Clouddriver", "answer", r.name, "error", err)
	}
}

func (k *kept) stored(name string) lastanswers.Answer {
	return lastanswers.Answer{Name: name, Fetched: k.fetched, Parts: spool.Encode(k.document())}
}

// ages returns how old the kept answers are, by the names of their resources.
func (a *answers) ages() map[string]time.Duration {
	ages := map[string]time.Duration{}
	for _, r := range resources {
		if k := a.state(r).kept; k != nil {
			ages[r.name] = time.Since(k.fetched)
		}
	}
	return ages
}

// errFound ends a scan at the first element.
var errFound = errors.New("the list is not empty")

// backgroundBytes bounds what a request in the background takes: the first element ends it.
const backgroundBytes = 1 << 20

// inBackground asks the upstream Clouddriver for a caller who has got an answer already whether a list is empty, unless the same is being
// asked, or enough else.
func (a *answers) inBackground(ctx context.Context, key string, caller http.Header, path *url.URL, found func(isEmpty bool)) {
	a.flights.DoChan("background "+key, func() (any, error) {
		select {
		case a.background <- struct{}{}:
			defer func() { <-a.background }()
		default:
			return nil, nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.client.MergeTimeout)
		defer cancel()
		p := a.client.open(ctx, caller, path)
		defer p.close()
		if p.document == nil {
			return nil, nil
		}
		grant, err := spool.NewMemory(backgroundBytes).Acquire(ctx, key, 1)
		if err != nil {
			return nil, nil
		}
		read := &window{ctx: ctx, body: p.document, grant: grant, limit: backgroundBytes}
		err = merging.Scan(read, '[', func(string, []byte) error { return errFound })
		switch {
		case err == nil:
			found(true)
		case errors.Is(err, errFound), errors.Is(err, fair.ErrTooLarge):
			found(false)
		}
		return nil, nil
	})
}
