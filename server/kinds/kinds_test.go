package kinds_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/kinds"
	"github.com/vedette-io/vedette/server/readlimit"
)

// clusters answer discover operations, as agents do.
type clusters struct {
	mu     sync.Mutex
	served map[vedette.AccountName]string // the Result by account; "frozen" never answers, and "" is a failure
	asked  []vedette.Operation
}

func (c *clusters) execute(ctx context.Context, op vedette.Operation) vedette.Outcome {
	c.mu.Lock()
	c.asked = append(c.asked, op)
	result := c.served[op.Account]
	c.mu.Unlock()
	switch result {
	case "":
		return vedette.Outcome{State: vedette.Failed, Status: 503, Message: "the API server is down"}
	case "frozen":
		<-ctx.Done()
		return vedette.Outcome{State: vedette.Failed, Status: 504, Message: "the agent did not answer"}
	}
	return vedette.Outcome{State: vedette.Done, Status: 200, Result: json.RawMessage(result)}
}

func (c *clusters) set(account vedette.AccountName, result string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.served[account] = result
}

func (c *clusters) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.asked)
}

// resultOf returns the Result of a cluster that serves kinds of one group.
func resultOf(plurals ...string) string {
	var list []string
	for _, plural := range plurals {
		list = append(list, fmt.Sprintf(`{"kind":%q,"group":"example.com","version":"v1","plural":%q,"namespaced":true}`, strings.ToUpper(plural), plural))
	}
	return `{"kinds":[` + strings.Join(list, ",") + `]}`
}

func requestOf(account vedette.AccountName, uid string) kinds.Request {
	return kinds.Request{Account: account, Cluster: vedette.Cluster{UID: uid}, Caller: "10.0.0.1", Requester: vedette.Requester{User: "ann"}}
}

func countKinds(c *kinds.Catalogue) (n int) {
	for range c.Kinds() {
		n++
	}
	return n
}

// TestClustersAreAskedOnce checks for how long an answer counts, whom it belongs to, and that a failure is remembered.
func TestClustersAreAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &clusters{served: map[vedette.AccountName]string{"a": resultOf("foos"), "b": resultOf("foos"), "down": ""}}
		cache := kinds.New(kinds.Config{Execute: c.execute})
		get := func(account vedette.AccountName, uid string, maxAge time.Duration, wantKinds, wantAsked int) *kinds.Catalogue {
			t.Helper()
			cat, err := cache.Get(t.Context(), requestOf(account, uid), maxAge)
			if got := c.count(); got != wantAsked {
				t.Errorf("%s: asked %d times, want %d", account, got, wantAsked)
			}
			switch {
			case wantKinds == 0 && (err == nil || !strings.Contains(err.Error(), "the API server is down")):
				t.Errorf("%s: got %v, want the reason", account, err)
			case wantKinds > 0 && (err != nil || countKinds(cat) != wantKinds):
				t.Fatalf("%s: got %v, %v, want %d kinds", account, cat, err, wantKinds)
			}
			return cat
		}
		first := get("a", "1", time.Minute, 1, 1)
		get("a", "1", time.Minute, 1, 1)
		if second := get("b", "2", time.Minute, 1, 2); second != first {
			t.Error("two clusters that serve the same have two catalogues")
		}
		c.set("a", resultOf("foos", "bars"))
		time.Sleep(4 * time.Second)
		get("a", "1", time.Minute, 1, 2)
		get("a", "1", 3*time.Second, 2, 3) // something was missing
		get("a", "other", time.Minute, 2, 4)
		if last := c.asked[3]; last.Cluster.UID != "other" || last.Requester.User != "ann" || last.Account != "a" {
			t.Errorf("asked %+v, want the operation for the other cluster", last)
		}
		time.Sleep(2 * time.Minute)
		get("a", "other", time.Minute, 2, 5)
		get("down", "3", time.Minute, 0, 6)
		get("down", "3", 0, 0, 6)
		time.Sleep(11 * time.Second)
		c.set("down", resultOf("foos"))
		get("down", "3", time.Minute, 1, 7)
	})
}

// TestFrozenClusterDelaysNobody checks that whoever waits for a frozen cluster leaves in time, shares its question, and does not
// delay others.
func TestFrozenClusterDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &clusters{served: map[vedette.AccountName]string{"a": resultOf("foos"), "frozen": "frozen"}}
		cache := kinds.New(kinds.Config{Execute: c.execute})
		var waiting sync.WaitGroup
		start := time.Now()
		for range 10 {
			waiting.Go(func() {
				if cat, err := cache.Get(t.Context(), requestOf("frozen", "1"), time.Minute); err == nil || time.Since(start) != kinds.Timeout {
					t.Errorf("got %v after %v, want an error after %v", cat, time.Since(start), kinds.Timeout)
				}
			})
		}
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		waiting.Go(func() {
			if _, err := cache.Get(impatient, requestOf("frozen", "1"), time.Minute); err == nil || time.Since(start) != time.Second {
				t.Errorf("a caller that leaves: got %v after %v", err, time.Since(start))
			}
		})
		synctest.Wait()
		if _, err := cache.Get(t.Context(), requestOf("a", "2"), time.Minute); err != nil || time.Since(start) != 0 {
			t.Errorf("another cluster: got %v after %v", err, time.Since(start))
		}
		waiting.Wait()
		if got := c.count(); got != 2 {
			t.Errorf("asked %d times, want once per cluster", got)
		}
	})
}

// TestMemoryIsBounded checks that accounts that were not used for the longest time are dropped.
func TestMemoryIsBounded(t *testing.T) {
	c := &clusters{served: map[vedette.AccountName]string{}}
	for n := range 10 {
		c.set(vedette.AccountName(fmt.Sprint(n)), resultOf(fmt.Sprintf("foo%d", n), strings.Repeat(fmt.Sprint(n), 20_000)))
	}
	cache := kinds.New(kinds.Config{Execute: c.execute, Bytes: 200_000}) // about four of them
	get := func(n int) {
		t.Helper()
		if _, err := cache.Get(t.Context(), requestOf(vedette.AccountName(fmt.Sprint(n)), "1"), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 10 {
		get(n)
		get(0) // the one that is used
	}
	if got := c.count(); got != 10 {
		t.Errorf("asked %d times, want once per account", got)
	}
	get(1)
	if got := c.count(); got != 11 {
		t.Errorf("asked %d times, want once more for an account that was not used", got)
	}
}

// TestClustersShareKinds checks that clusters that serve nearly the same take little more memory than one.
func TestClustersShareKinds(t *testing.T) {
	c := &clusters{served: map[vedette.AccountName]string{}}
	same := make([]string, 100)
	for n := range same {
		same[n] = fmt.Sprintf("kind%d%s", n, strings.Repeat("x", 1000))
	}
	cache := kinds.New(kinds.Config{Execute: c.execute, Bytes: 600_000}) // one cluster takes about 250,000
	for round := range 3 {
		for n := range 100 {
			account := vedette.AccountName(fmt.Sprint(n))
			c.set(account, resultOf(append([]string{fmt.Sprintf("own%d", n)}, same...)...))
			cat, err := cache.Get(t.Context(), requestOf(account, "1"), time.Hour)
			if err != nil || countKinds(cat) != 101 || len(cat.Match(fmt.Sprintf("own%d", n)).Kinds) != 1 {
				t.Fatalf("round %d, account %d: got %v", round, n, err)
			}
		}
	}
	if got := c.count(); got != 100 {
		t.Errorf("asked %d times, want once per cluster", got)
	}
}

// TestInvalidCataloguesAreRefused checks that what an agent says wrongly is not taken for what its cluster serves.
func TestInvalidCataloguesAreRefused(t *testing.T) {
	c := &clusters{served: map[vedette.AccountName]string{}}
	cache := kinds.New(kinds.Config{Execute: c.execute})
	for n, result := range []string{
		`[]`, `{"kinds":[{}]}`, `{"kinds":[{"kind":"A","version":"v1"}]}`, "{\"kinds\":[{\"kind\":\"\xff\",\"version\":\"v1\",\"plural\":\"a\"}]}",
		`{"kinds":[],"kinds":[]}`, `{"kinds":[{"kind":"A"`, `{"kinds":[` + strings.Repeat(`{},`, 2_500_000) + `{}]}`,
	} {
		account := vedette.AccountName(fmt.Sprint(n))
		c.set(account, result)
		if cat, err := cache.Get(t.Context(), requestOf(account, "1"), time.Minute); vedette.KindOf(err) != vedette.Unavailable {
			t.Errorf("%.60s: got %v, %v, want an error", result, cat, err)
		}
	}
}

// TestNamesMatchServedKinds checks what names mean in a catalogue.
func TestNamesMatchServedKinds(t *testing.T) {
	c := &clusters{served: map[vedette.AccountName]string{"a": `{"kinds":[
		{"kind":"Pod","version":"v1","plural":"pods","singular":"pod","shortNames":["po"],"namespaced":true,"categories":["all"],"verbs":["get","list"]},
		{"kind":"Review","version":"v1","plural":"reviews","categories":["all"],"verbs":["create"]},
		{"kind":"Foo","group":"example.com","version":"v1","versions":["v1","v1beta1"],"plural":"foos","shortNames":["po"],"categories":["all"],"verbs":["list"]}],
		"unknownGroups":["metrics.k8s.io"]}`}}
	cat, err := kinds.New(kinds.Config{Execute: c.execute}).Get(t.Context(), requestOf("a", "1"), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"po": "Pod@v1", "FOOS": "Foo.example.com@v1", "foo.example.com": "Foo.example.com@v1", "foos.v1beta1.example.com": "Foo.example.com@v1beta1 v1beta1",
		"foos.v2.example.com": "", "po.example.com": "Foo.example.com@v1", "all": "category Pod@v1 Foo.example.com@v1", "ALL": "category Pod@v1 Foo.example.com@v1",
		"f\u00f6\u00f6s": "", "": "", ".": "", "pods.": "Pod@v1", "review": "Review@v1",
	} {
		match := cat.Match(name)
		var got []string
		if match.IsCategory {
			got = append(got, "category")
		}
		for _, k := range match.Kinds {
			got = append(got, k.Kind.String()+"@"+k.Version)
		}
		if match.Version != "" {
			got = append(got, match.Version)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
	for name, may := range map[string]bool{"nodemetrics": true, "pods.metrics.k8s.io": true, "pods.v1beta1.metrics.k8s.io": true, "bars.example.com": false} {
		if cat.MayServe(name) != may {
			t.Errorf("MayServe(%s): got %v, want %v", name, !may, may)
		}
	}
}

// TestCallersDoNotWaitForOthers checks that who asks about a cluster does not wait behind the questions of another caller that has asked
// about it before, and does not get an error that only the other one has.
func TestCallersDoNotWaitForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &clusters{served: map[vedette.AccountName]string{"fast": resultOf("foos")}}
		cache := kinds.New(kinds.Config{Execute: c.execute})
		get := func(ctx context.Context, caller string, account vedette.AccountName) error {
			r := requestOf(account, "1")
			r.Caller = caller
			_, err := cache.Get(ctx, r, time.Minute)
			return err
		}
		ctx, leave := context.WithCancel(t.Context())
		for n := range 40 {
			account := vedette.AccountName(fmt.Sprint("frozen-", n))
			c.set(account, "frozen")
			go func() { _ = get(ctx, "one", account) }()
		}
		synctest.Wait()
		go func() { _ = get(ctx, "one", "fast") }()
		synctest.Wait()
		start := time.Now()
		if err := get(t.Context(), "other", "fast"); err != nil || time.Since(start) > time.Second {
			t.Errorf("got %v after %v, want an answer at once", err, time.Since(start))
		}
		leave()
		time.Sleep(time.Minute) // questions outlive those who asked

		c.set("large", resultOf(strings.Repeat("x", 1<<20)))
		limiter := readlimit.New(readlimit.Config{Bytes: 1 << 20})
		limiter.HoldAnswers(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			for readlimit.Hold(r.Context(), 2<<20) {
			}
			if err := get(r.Context(), "one", "large"); err == nil || !strings.Contains(err.Error(), "no memory") {
				t.Errorf("got %v, want an error about memory", err)
			}
		})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
		if err := get(t.Context(), "other", "large"); err != nil {
			t.Errorf("got %v, which is the error of another caller", err)
		}
	})
}

// TestCataloguesAreImmutable reads catalogues while the cache drops them and adds them again. The race detector finds writes.
func TestCataloguesAreImmutable(t *testing.T) {
	c := &clusters{served: map[vedette.AccountName]string{}}
	cache := kinds.New(kinds.Config{Execute: c.execute, Bytes: 1})
	var reading sync.WaitGroup
	for _, account := range []vedette.AccountName{"a", "b", "c"} {
		result := resultOf("widgets", "gadgets")
		if account == "c" {
			result = resultOf("others")
		}
		c.set(account, result)
		reading.Go(func() {
			for range 2000 {
				catalogue, err := cache.Get(t.Context(), requestOf(account, "1"), 0)
				if err != nil || countKinds(catalogue) == 0 {
					t.Errorf("account %s: got %v", account, err)
					return
				}
			}
		})
	}
	reading.Wait()
}
