package beside

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette/test/beside/standin"
	"github.com/vedette-io/vedette/test/proxy"
)

// extra is an account of the upstream Clouddriver that can disappear.
const extra = "extra"

// The applications of TestBadUpstreams: one that both sides have, and one of each.
const (
	sharedApplication   = "shared"
	agentsApplication   = "agentsown"
	upstreamApplication = "theirs"
)

// mergedPaths are requests that concern both sides. Those of keepingPaths are answered from the last complete answer of an
// upstream Clouddriver that does not answer.
var (
	keepingPaths = []string{"/credentials", "/credentials?expand=true", "/applications?restricted=false", "/applications?restricted=false&expand=false",
		"/artifacts/credentials", "/features/stages"}
	mergedPaths = []string{"/applications/shared", "/applications/theirs", "/applications/shared/clusters",
		"/applications/shared/serverGroups", "/applications/shared/serverGroups?expand=true", "/applications/shared/serverGroupManagers",
		"/applications/shared/loadBalancers", "/applications/shared/rawResources", "/securityGroups", "/serverGroups?applications=shared,theirs",
		"/serverGroups?ids=east:beside:replicaSet+shared-1,west:beside:replicaSet+shared-1", "/search?q=shared&type=serverGroups", "/task"}
	// ownPaths are requests that concern only agents.
	ownPaths = []string{"/credentials/west", "/manifests/west/beside/deployment%20agentsown?includeEvents=false", "/applications/agentsown",
		"/applications/agentsown/clusters", "/applications/agentsown/clusters/west", "/applications/agentsown/serverGroups",
		"/applications/agentsown/serverGroupManagers", "/applications/agentsown/loadBalancers", "/serverGroups/west/beside/replicaSet%20agentsown-1"}
)

// badUpstream is one way to misbehave.
type badUpstream struct {
	name  string
	begin func(w *badWorld)
	end   func(w *badWorld)
	// isDown is set if the upstream Clouddriver does not answer at all.
	isDown bool
	// isChanging is set if the upstream Clouddriver has the account extra in every second answer.
	isChanging bool
}

// misbehaving is a way that the stand-in knows.
func misbehaving(name string, fault standin.Fault) badUpstream {
	return badUpstream{name: name, begin: func(w *badWorld) { w.standIn.Misbehave(fault) }, end: func(w *badWorld) { w.standIn.Misbehave(nil) }}
}

func badUpstreams() []badUpstream {
	late := misbehaving("answers after the merge timeout", standin.Delay(2500*time.Millisecond))
	cutOff := misbehaving("cuts answers off", standin.CutOff)
	late.isDown, cutOff.isDown = true, true
	return []badUpstream{
		{name: "freezes", begin: func(w *badWorld) { w.standIn.Freeze() }, end: func(w *badWorld) { w.standIn.Thaw() }, isDown: true},
		{name: "refuses connections", begin: func(w *badWorld) { w.link.Refuse() }, end: func(w *badWorld) { w.link.Heal() }, isDown: true},
		misbehaving("answers late", standin.Delay(300*time.Millisecond)),
		late,
		cutOff,
		misbehaving("ends answers in the middle", standin.EndEarly),
		misbehaving("answers with a page", standin.HTML),
		misbehaving("redirects", standin.Redirect),
		misbehaving("answers 401", standin.Status(http.StatusUnauthorized)),
		misbehaving("answers 500", standin.Status(http.StatusInternalServerError)),
		misbehaving("answers 502", standin.Status(http.StatusBadGateway)),
		misbehaving("has lists without an end", standin.Endless),
		misbehaving("has lists of 300 MB", standin.Huge(300<<20)),
		misbehaving("has objects of agents' accounts", standin.AlsoAs(east, west)),
		misbehaving("has an agents' account in another spelling", standin.AlsoAs(east, "West")),
		misbehaving("has everything twice", standin.Duplicates),
		{name: "has another list of accounts in every second answer", isChanging: true,
			begin: func(w *badWorld) { w.standIn.Misbehave(w.standIn.Flapping(extra)) }, end: func(w *badWorld) { w.standIn.Misbehave(nil) }},
	}
}

// badWorld is a server between an agent, whose cluster never changes, and a stand-in.
type badWorld struct {
	t        *testing.T
	in       *installation
	standIn  *standin.Server
	link     *proxy.Proxy      // to the stand-in
	complete map[string]string // complete answers by path
	without  map[string]string // and those without the account extra
}

// TestBadUpstreams asks everything while the upstream Clouddriver misbehaves: answers are complete or status 503, and
// requests that concern only agents are not affected.
func TestBadUpstreams(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it starts programs")
	}
	// Lists that were empty are not asked for again meanwhile: some of what the stand-in says is that it has objects everywhere.
	w := newBadWorld(t, shortTimeouts+", refreshInterval: 10m")
	w.standIn.SetAccounts([]standin.Account{{Name: east}})
	w.awaitExtra(false)
	w.without = w.honest()
	w.standIn.SetAccounts([]standin.Account{{Name: east}, {Name: extra}})
	w.awaitExtra(true)
	w.complete = w.honest()
	for _, bad := range badUpstreams() {
		t.Run(bad.name, func(t *testing.T) {
			w.t = t
			w.awaitComplete()
			sleep(t.Context(), currentFor) // each request of the next step asks the upstream Clouddriver
			bad.begin(w)
			w.check(bad)
			bad.end(w)
		})
	}
	w.t = t
	w.checkMemory("all of these")
}

// currentFor is for how long an answer of the upstream Clouddriver counts as the current one.
const currentFor = time.Second

// awaitExtra waits until all lists have the account extra, or none has.
func (w *badWorld) awaitExtra(isThere bool) {
	w.t.Helper()
	await(w.t, time.Minute, fmt.Sprintf("the account extra is in all lists: %t", isThere), func(ctx context.Context) error {
		for _, path := range keepingPaths[:4] {
			if a := send(ctx, http.MethodGet, w.in.url+path, nil); a.status != http.StatusOK || strings.Contains(string(a.body), extra) != isThere {
				return fmt.Errorf("GET %s: got %v", path, a)
			}
		}
		return nil
	})
}

// honest returns the answers of a server whose upstream Clouddriver is in order.
func (w *badWorld) honest() map[string]string {
	w.t.Helper()
	answers := map[string]string{}
	for _, path := range slices.Concat(keepingPaths, mergedPaths, ownPaths) {
		a := send(w.t.Context(), http.MethodGet, w.in.url+path, nil)
		if a.err != nil || a.status != http.StatusOK || a.header.Get("X-Vedette-Incomplete") != "" {
			w.t.Fatalf("GET %s: got %v, want status 200", path, a)
		}
		answers[path] = canonical(a.body)
	}
	return answers
}

// awaitComplete waits until all answers are complete again after the last misbehaviour.
func (w *badWorld) awaitComplete() {
	w.t.Helper()
	await(w.t, time.Minute, "all answers are complete", func(ctx context.Context) error {
		for _, path := range slices.Concat(keepingPaths, mergedPaths, ownPaths) {
			if a := send(ctx, http.MethodGet, w.in.url+path, nil); canonical(a.body) != w.complete[path] {
				return fmt.Errorf("GET %s: got %v", path, a)
			}
		}
		return nil
	})
}

// check asks all at once.
func (w *badWorld) check(bad badUpstream) {
	w.t.Helper()
	var asking, owns sync.WaitGroup
	problems := newProblems()
	ctx, cancel := context.WithCancel(w.t.Context())
	for _, path := range slices.Concat(keepingPaths, mergedPaths) {
		asking.Go(func() {
			for range 2 { // the second may find what the first has left
				problems.add(path, w.judge(bad, path, send(w.t.Context(), http.MethodGet, w.in.url+path, nil)))
			}
			if bad.isDown && slices.Contains(keepingPaths, path) {
				problems.add(path, w.awaitAge(bad, path))
			}
		})
	}
	for _, path := range ownPaths {
		owns.Go(func() {
			answers, late := 0, 0
			for ; answers < 3 || ctx.Err() == nil; answers++ {
				a := send(w.t.Context(), http.MethodGet, w.in.url+path, nil)
				problems.add(path, w.judgeOwn(path, a))
				if a.ended.Sub(a.began) > mergeTimeout {
					late++
				}
				sleep(ctx, 50*time.Millisecond)
			}
			if late > answers/2 { // on a loaded machine one answer may take longer
				problems.add(path, fmt.Sprintf("%d of %d answers took longer than %v, as if they had waited for the upstream Clouddriver", late, answers, mergeTimeout))
			}
		})
	}
	asking.Wait()
	cancel()
	owns.Wait()
	problems.report(w.t)
}

// judge returns what is wrong with an answer that concerns both sides; "" if nothing is.
func (w *badWorld) judge(bad badUpstream, path string, a answer) string {
	isLast := slices.Contains(keepingPaths, path) && bad.isDown
	got := canonical(a.body)
	switch {
	case a.err != nil:
		return fmt.Sprintf("got %v, want an answer", a)
	case a.status == http.StatusServiceUnavailable && a.header.Get("Retry-After") == "":
		return fmt.Sprintf("got %v, want Retry-After", a)
	case a.status == http.StatusServiceUnavailable && isLast:
		return fmt.Sprintf("got %v, want the last complete answer", a)
	case a.status == http.StatusServiceUnavailable:
		return ""
	case a.status != http.StatusOK:
		return fmt.Sprintf("got %v, want status 200 or 503", a)
	case a.header.Get("X-Vedette-Incomplete") != "":
		return fmt.Sprintf("got %v, want no mark", a)
	case got != w.complete[path] && (!bad.isChanging || got != w.without[path]):
		return fmt.Sprintf("got %v, want the complete answer: %s", a, difference(got, w.complete[path]))
	}
	return ""
}

// ageDelay is how long an answer counts as the current one, and more.
const ageDelay = time.Minute

// awaitAge asks until the answer says how old it is, and returns what is wrong meanwhile; "" if nothing is.
func (w *badWorld) awaitAge(bad badUpstream, path string) string {
	began := time.Now()
	for {
		a := send(w.t.Context(), http.MethodGet, w.in.url+path, nil)
		switch problem := w.judge(bad, path, a); {
		case problem != "":
			return problem
		case a.header.Get("X-Vedette-Upstream-Age") != "":
			return ""
		case time.Since(began) > ageDelay:
			return fmt.Sprintf("got %v, want the age of the last complete answer", a)
		}
		sleep(w.t.Context(), 100*time.Millisecond)
	}
}

// judgeOwn returns what is wrong with an answer that concerns only agents; "" if nothing is.
func (w *badWorld) judgeOwn(path string, a answer) string {
	switch {
	case a.err != nil || a.status != http.StatusOK:
		return fmt.Sprintf("got %v, want status 200", a)
	case canonical(a.body) != w.complete[path]:
		return fmt.Sprintf("got %v: %s", a, difference(canonical(a.body), w.complete[path]))
	}
	return ""
}

// problems are what is wrong, by path. The first of each path counts.
type problems struct {
	mu     sync.Mutex
	byPath map[string]string
}

func newProblems() *problems { return &problems{byPath: map[string]string{}} }

func (p *problems) add(path, problem string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if problem != "" && p.byPath[path] == "" {
		p.byPath[path] = problem
	}
}

func (p *problems) report(t *testing.T) {
	t.Helper()
	for _, path := range slices.Sorted(maps.Keys(p.byPath)) {
		t.Errorf("GET %s: %s", path, p.byPath[path])
	}
}
