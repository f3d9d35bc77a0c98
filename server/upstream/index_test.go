package upstream

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette/server/accountlist"
)

// theirClouddriver answers for the application both in the account theirs, and for others in accounts that moved.
func theirClouddriver(rw http.ResponseWriter, r *http.Request) {
	body := map[string]string{
		"/credentials": `[{"name":"agents"},{"name":"theirs"}]`,
		"/applications": `[{"name":"Both","clusterNames":{"theirs":["deployment web"]}},{"name":"moved","clusterNames":{"agents":["deployment web"]}},` +
			`{"name":"empty","clusterNames":{}}]`,
		"/applications/services/loadBalancers": `[{"account":"theirs","name":"service web"}]`,
	}[strings.TrimPrefix(r.URL.Path, "/base")]
	if body == "" {
		body = `[]`
	}
	answerJSON(http.StatusOK, body)(rw, r)
}

// ourAPI knows all applications but one.
func ourAPI(rw http.ResponseWriter, r *http.Request) {
	parts := strings.Split(r.URL.Path, "/")
	switch {
	case strings.Contains(r.URL.Path, "nobody"):
		answerJSON(http.StatusNotFound, notFoundBody)(rw, r)
	case len(parts) == 3 && parts[1] == "applications":
		answerJSON(http.StatusOK, `{"name":"web","clusters":{"agents":[]}}`)(rw, r)
	case len(parts) == 4 && parts[3] == "clusters":
		answerJSON(http.StatusOK, `{"agents":[]}`)(rw, r)
	default:
		answerJSON(http.StatusOK, `[]`)(rw, r)
	}
}

// TestOnlyWhereItCanHaveSomething checks which requests reach the upstream Clouddriver, which then fails.
func TestOnlyWhereItCanHaveSomething(t *testing.T) {
	w := newWorld(t, nil)
	w.local.answer = ourAPI
	w.setTheirs(theirClouddriver)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- w.remote.Run(ctx) }()
	for len(w.remote.Stats().Ages) < len(resources) {
		time.Sleep(time.Millisecond)
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"ours", "services"} {
		w.send(t, http.MethodGet, "/applications/"+path+"/loadBalancers", "") // it is remembered which have none
	}
	w.send(t, http.MethodPost, "/kubernetes/ops", `[{"deployManifest":{"account":"theirs","moniker":{"app":"deployed"}}}]`)
	w.setTheirs(answerJSON(http.StatusBadGateway, ""))
	w.theirs.requests()
	for _, tt := range []struct {
		path  string
		asked bool
	}{
		{"/applications/ours", false},
		{"/applications/ours/clusters", false},
		{"/applications/ours/serverGroups", false},
		{"/applications/ours/serverGroupManagers", false},
		{"/applications/ours/loadBalancers", false},
		{"/applications/services/serverGroups", false},
		{"/applications/services/loadBalancers", true},
		{"/applications/new/loadBalancers", true},
		{"/applications/both", true},
		{"/applications/BOTH/clusters", true},
		{"/applications/both/serverGroups", true},
		{"/applications/both/loadBalancers", true},
		{"/applications/moved/serverGroups", false},
		{"/applications/empty/serverGroups", true},
		{"/applications/deployed/serverGroups", true},
		{"/applications/nobody", true},
		{"/applications/nobody/serverGroups", true},
		{"/serverGroups?applications=ours,moved", false},
		{"/serverGroups?applications=ours,both", true},
		{"/serverGroups?applications=ours,nobody", true},
		{"/serverGroups?ids=agents:shop:web,agents:shop:api", false},
		{"/serverGroups?ids=agents:shop:web,theirs:shop:api", true},
		{"/serverGroups?ids=agents:shop:web&ids=other:shop:api", true},
		{"/task", true},
		{"/kubernetes/loadBalancers", true},
	} {
		response, body := w.send(t, http.MethodGet, tt.path, "")
		if got := len(w.theirs.requests()); got > 0 != tt.asked || (response.StatusCode == http.StatusOK) == tt.asked {
			t.Errorf("%s: got %d %s and %d requests upstream, want it asked: %t", tt.path, response.StatusCode, body, got, tt.asked)
		}
	}
	w.accounts.set("theirs", complete) // now it has nothing that this server has not
	for _, path := range []string{"/applications/both/serverGroups", "/kubernetes/loadBalancers", "/applications/nobody"} {
		if response, body := w.send(t, http.MethodGet, path, ""); response.StatusCode == http.StatusServiceUnavailable || len(w.theirs.requests()) > 0 {
			t.Errorf("%s: got %d %s, want it without the upstream Clouddriver", path, response.StatusCode, body)
		}
	}
}

// TestEmptyListsAreAskedForAgain checks that a Service without a workload is noticed.
func TestEmptyListsAreAskedForAgain(t *testing.T) {
	const path = "/applications/ours/loadBalancers"
	w := newWorld(t, func(c *Config) { c.RefreshInterval = time.Nanosecond })
	w.local.answer = ourAPI
	w.setTheirs(answerJSON(http.StatusOK, `[]`))
	w.remote.answers.index.setAccounts([]string{"theirs"}, time.Now())
	w.remote.answers.index.setApplications(map[string][]string{}, time.Now())
	w.send(t, http.MethodGet, path, "")
	w.setTheirs(answerJSON(http.StatusOK, `[{"account":"theirs","name":"service web"}]`))
	deadline := time.Now().Add(time.Minute)
	for {
		_, body := w.send(t, http.MethodGet, path, "")
		if strings.Contains(body, "service web") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("got %s, want the new Service", body)
		}
	}
}

// TestEmptyForOneUser checks that a user who may not see an account does not hide its objects from others.
func TestEmptyForOneUser(t *testing.T) {
	const path = "/applications/ours/loadBalancers"
	w := newWorld(t, nil)
	w.local.answer = ourAPI
	w.setTheirs(func(rw http.ResponseWriter, r *http.Request) {
		body := `[]`
		if r.Header.Get("X-SPINNAKER-USER") == "bob" {
			body = `[{"account":"theirs","name":"service web"}]`
		}
		answerJSON(http.StatusOK, body)(rw, r)
	})
	w.remote.answers.index.setAccounts([]string{"theirs"}, time.Now())
	w.remote.answers.index.setApplications(map[string][]string{}, time.Now())
	for _, user := range []string{"ann", "bob", "ann", "bob"} {
		if _, body := w.send(t, http.MethodGet, path, "", "X-SPINNAKER-USER", user); strings.Contains(body, "service web") != (user == "bob") {
			t.Errorf("%s: got %s", user, body)
		}
	}
}

// TestIndexForgetsAfterAWhile checks what is known, and for how long.
func TestIndexForgetsAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newIndex(20*time.Minute, time.Hour, func() bool { return false })
		ours := &accountSet{}
		if x.hasAccount("a") != unknown || x.hasApplication("a", ours) != unknown || x.hasOthers(ours) != unknown {
			t.Error("got something from an index that is empty")
		}
		before := x.accountsVersion()
		x.setAccounts([]string{"prod"}, time.Now())
		x.setAccounts([]string{"prod"}, time.Now())
		x.setApplications(map[string][]string{"web": {"prod"}}, time.Now())
		if x.accountsVersion() != before+1 || x.hasAccount("prod") != yes || x.hasAccount("PROD") != yes || x.hasAccount("dev") != no || x.hasOthers(ours) != yes ||
			x.hasApplication("WEB", ours) != yes || x.hasApplication("api", ours) != no {
			t.Error("got other accounts and applications than were set")
		}
		x.mention("api")
		x.setEmpty("/x", true)
		if x.hasApplication("API", ours) != yes || x.wasEmpty("/x").IsZero() || !x.wasEmpty("/y").IsZero() {
			t.Error("got nothing of what was noted")
		}
		time.Sleep(mentionedMaxAge)
		if x.hasApplication("api", ours) != no {
			t.Error("an application of an operation is looked for for ever")
		}
		time.Sleep(time.Hour)
		if x.hasAccount("prod") != unknown || x.hasApplication("web", ours) != unknown || x.hasOthers(ours) != unknown || !x.wasEmpty("/x").IsZero() {
			t.Error("got something from an index that is too old")
		}
		for i := range maxRemembered + 100 {
			x.mention("app-" + strconv.Itoa(i))
			x.setEmpty(fmt.Sprintf("/applications/app-%d/loadBalancers", i), true)
		}
		if len(x.mentioned) > maxRemembered || len(x.empty) > maxRemembered {
			t.Errorf("got %d and %d names, want at most %d", len(x.mentioned), len(x.empty), maxRemembered)
		}
	})
}

// TestAnswersOverRestarts restarts the server while the upstream Clouddriver does not answer.
func TestAnswersOverRestarts(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.RefreshInterval = 10 * time.Millisecond })
	w.setTheirs(theirClouddriver)
	w.local.answer = ourAPI
	w.send(t, http.MethodGet, "/credentials", "")
	run := func(r *Remote, until func() bool) {
		t.Helper()
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()
		for !until() {
			time.Sleep(time.Millisecond)
		}
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	stored := func() int {
		w.accounts.mu.Lock()
		defer w.accounts.mu.Unlock()
		return len(w.accounts.answers)
	}
	run(w.remote, func() bool { return stored() == len(resources) })
	w.setTheirs(hang)
	again, err := NewRemote(Config{BaseURL: w.handler.client.BaseURL, Timeout: time.Second}, accountlist.NewCache(w.accounts), w.accounts)
	if err != nil {
		t.Fatal(err)
	}
	run(again, func() bool { return len(again.Stats().Ages) == len(resources) })
	if again.answers.index.hasApplication("both", &accountSet{}) != yes || again.answers.index.hasAccount("theirs") != yes {
		t.Errorf("got the ages %v, want what was stored", again.Stats().Ages)
	}
	if l := again.answers.latest(t.Context(), accountNames); l.kept == nil {
		t.Errorf("got %+v, want the last answer", l)
	}
	other, err := NewRemote(Config{BaseURL: "http://127.0.0.1:1", Timeout: time.Second}, accountlist.NewCache(w.accounts), w.accounts)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.answers.load(t.Context()); err != nil || other.answers.index.hasAccount("theirs") != unknown {
		t.Errorf("another upstream Clouddriver: got %v and its accounts, want none", err)
	}
	for name, a := range w.accounts.answers { // what is stored is not believed
		a.Parts = [][]byte{[]byte("garbage")}
		w.accounts.answers[name] = a
	}
	broken, err := NewRemote(Config{BaseURL: w.handler.client.BaseURL, Timeout: time.Second}, accountlist.NewCache(w.accounts), w.accounts)
	if err != nil {
		t.Fatal(err)
	}
	if err := broken.answers.load(t.Context()); err != nil || len(broken.Stats().Ages) != 0 {
		t.Errorf("got %v and %v, want nothing of what cannot be read", err, broken.Stats().Ages)
	}
}

// TestConcurrentRequestsForAResource checks that many callers cause one request.
func TestConcurrentRequestsForAResource(t *testing.T) {
	w := newWorld(t, nil)
	asked, release := make(chan struct{}, 50), make(chan struct{})
	w.setTheirs(func(rw http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-release
		theirClouddriver(rw, r)
	})
	done := make(chan last, 50)
	var begun sync.WaitGroup
	for range 50 {
		begun.Add(1)
		go func() {
			begun.Done()
			done <- w.remote.answers.latest(t.Context(), accountDetails)
		}()
	}
	<-asked
	begun.Wait() // the answer counts for a second only
	close(release)
	for range 50 {
		if l := <-done; l.kept == nil || l.reason != "" {
			t.Errorf("got %+v, want the answer", l)
		}
	}
	if n := len(w.theirs.requests()); n != 1 {
		t.Errorf("got %d requests, want 1", n)
	}
}

// TestNobodyWaitsForSlowAnswers checks that callers do not wait for an answer that takes long each time.
func TestNobodyWaitsForSlowAnswers(t *testing.T) {
	w := newWorld(t, nil)
	w.setTheirs(theirClouddriver)
	if l := w.remote.answers.latest(t.Context(), accountDetails); l.kept == nil {
		t.Fatal("got nothing")
	}
	a := w.remote.answers
	a.mu.Lock()
	a.states[accountDetails].took = patience + 1
	a.states[accountDetails].tried = time.Now().Add(-time.Minute)
	a.mu.Unlock()
	release := make(chan struct{})
	w.setTheirs(func(rw http.ResponseWriter, r *http.Request) {
		<-release
		theirClouddriver(rw, r)
	})
	start := time.Now()
	if l := a.latest(t.Context(), accountDetails); l.kept == nil || l.reason == "" || time.Since(start) >= patience {
		t.Errorf("got %+v after %s, want the last answer at once", l, time.Since(start))
	}
	close(release)
	for a.state(accountDetails).isFailing {
		time.Sleep(time.Millisecond)
	}
	if l := a.latest(t.Context(), accountDetails); l.kept == nil || l.reason != "" {
		t.Errorf("got %+v, want the current answer", l)
	}
}

// TestRepeatedRequestsStayOnTheirSide sends operations again after their account has moved.
func TestRepeatedRequestsStayOnTheirSide(t *testing.T) {
	w := newWorld(t, nil)
	post := func(id, account, user, want string) {
		t.Helper()
		path := "/kubernetes/ops?clientRequestId=" + id
		if _, body := w.send(t, http.MethodPost, path, "["+deployTo(account)+"]", "X-SPINNAKER-USER", user); body != "answer of "+want {
			t.Errorf("%s of %s in %s: got %s, want the answer of %s", id, user, account, body, want)
		}
	}
	w.accounts.remove(ourAccount)
	post("1", ourAccount, "ann", "theirs")
	w.accounts.set(ourAccount, complete)
	post("1", ourAccount, "ann", "theirs")
	post("1", ourAccount, "bob", "own") // another request with the same id
	post("1", theirAccount, "ann", "theirs")
	post("2", ourAccount, "ann", "own")
	w.accounts.remove(ourAccount)
	post("2", ourAccount, "ann", "own")
	post("", ourAccount, "ann", "theirs")
	for i := range maxSides + 10 {
		_, _ = w.handler.sides.decide(&http.Request{URL: w.handler.client.url(w.handler.client.base, "clientRequestId="+strconv.Itoa(i))}, nil, true)
	}
	if n := len(w.handler.sides.sides); n > maxSides {
		t.Errorf("got %d requests remembered, want at most %d", n, maxSides)
	}
}
