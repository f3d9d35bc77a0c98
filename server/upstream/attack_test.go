package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/upstream/spool"
	"github.com/vedette-io/vedette/test/ports"
)

// checkNoHalf checks that an answer has the account of both sides, or is an error.
func checkNoHalf(t *testing.T, w *world, path, want string) {
	t.Helper()
	response, body := w.send(t, http.MethodGet, path, "")
	if response.StatusCode == http.StatusNotFound || response.StatusCode == http.StatusOK && !strings.Contains(body, want) {
		t.Errorf("%s: got %d %s, want %q in it or an error", path, response.StatusCode, body, want)
	}
}

// fetchAll reads all resources once.
func (w *world) fetchAll(t *testing.T) {
	t.Helper()
	for _, r := range resources {
		w.remote.answers.fetch(t.Context(), r)
	}
}

// TestRefusalIsNotAskedAgain checks that the words of a refusal are those that came with it.
func TestRefusalIsNotAskedAgain(t *testing.T) {
	for _, path := range []string{"/applications/web/serverGroups", "/applications"} {
		w := newWorld(t, nil)
		w.local.answer = answerJSON(http.StatusOK, `[{"account":"agents","name":"ours"}]`)
		var asked atomic.Int64
		w.setTheirs(func(rw http.ResponseWriter, r *http.Request) {
			if asked.Add(1) == 1 {
				answerJSON(http.StatusForbidden, `{"message":"Access is denied"}`)(rw, r)
				return
			}
			answerJSON(http.StatusOK, `[{"account":"agents","name":"forged"}]`)(rw, r)
		})
		if response, body := w.send(t, http.MethodGet, path, ""); response.StatusCode != http.StatusForbidden || body != `{"message":"Access is denied"}` {
			t.Errorf("%s: got %d %s, want the refusal", path, response.StatusCode, body)
		}
	}
}

// TestNotFoundOfAGateway checks that a 404 which is not Clouddriver's does not pass for an empty answer.
func TestNotFoundOfAGateway(t *testing.T) {
	for _, tt := range mergeCases {
		w := newWorld(t, nil)
		w.answers(tt.local, tt.theirs)
		for _, answer := range []http.HandlerFunc{answerJSON(http.StatusNotFound, `<html>default backend</html>`), answerJSON(http.StatusNotFound, `{"status":200}`)} {
			w.setTheirs(answer)
			if response, body := w.send(t, http.MethodGet, tt.path, ""); response.StatusCode != http.StatusServiceUnavailable {
				t.Errorf("%s: got %d %s, want %d", tt.path, response.StatusCode, body, http.StatusServiceUnavailable)
			}
		}
	}
}

// TestSettledAccountIsInOnePart follows an account that its agent may not read all of, and that the upstream Clouddriver loses.
func TestSettledAccountIsInOnePart(t *testing.T) {
	w := newWorld(t, nil)
	w.accounts.set(ourAccount, settled)
	w.local.answer = answerJSON(http.StatusOK, `[{"name":"agents","type":"kubernetes"}]`)
	w.setTheirs(answerJSON(http.StatusOK, `[{"name":"theirs"}]`))
	checkNoHalf(t, w, "/credentials", "agents") // nothing was known of the upstream Clouddriver before
	w.setTheirs(answerJSON(http.StatusOK, `[{"name":"agents","type":"old"},{"name":"theirs"}]`))
	w.fetchAll(t)
	checkNoHalf(t, w, "/credentials", "old")
	w.setTheirs(answerJSON(http.StatusOK, `[{"name":"theirs"}]`))
	w.expire(time.Minute)
	checkNoHalf(t, w, "/credentials", "agents")
	w.remote.answers.index.accountsAt = time.Now().Add(-48 * time.Hour) // it has not answered since
	w.accounts.set("another", arriving)
	w.local.answer = nil
	if _, body := w.send(t, http.MethodGet, "/manifests/agents/shop/pod%20a", ""); body != "answer of own" {
		t.Errorf("got %s, want this server's answer for an account that the upstream Clouddriver did not have", body)
	}
}

// TestApplicationOfAnArrivingAccount checks an application that the index does not have yet, and that this server knows only of an
// account for which it does not answer.
func TestApplicationOfAnArrivingAccount(t *testing.T) {
	w := newWorld(t, nil)
	w.accounts.set("coming", arriving)
	w.local.answer = func(rw http.ResponseWriter, r *http.Request) {
		body := `[{"account":"coming","name":"half"}]`
		if strings.HasSuffix(r.URL.Path, "/new") {
			body = `{"name":"new","clusters":{"coming":[{"name":"half"}]}}`
		}
		answerJSON(http.StatusOK, body)(rw, r)
	}
	w.setTheirs(func(rw http.ResponseWriter, r *http.Request) {
		body := `[{"account":"coming","name":"whole"}]`
		if strings.HasSuffix(r.URL.Path, "/new") {
			body = `{"name":"new","clusters":{"coming":[{"name":"whole"}]}}`
		}
		answerJSON(http.StatusOK, body)(rw, r)
	})
	w.remote.answers.index.setAccounts([]string{"theirs", "coming"}, time.Now())
	w.remote.answers.index.setApplications(map[string][]string{"web": {"theirs"}}, time.Now())
	for _, path := range []string{"/applications/new", "/applications/new/serverGroups"} {
		checkNoHalf(t, w, path, "whole")
	}
	w.local.answer = ourAPI // knows the application in an account for which it answers
	w.setTheirs(hang)
	if response, body := w.send(t, http.MethodGet, "/applications/ours/clusters", ""); response.StatusCode != http.StatusOK {
		t.Errorf("an application of agents while another account arrives: got %d %s", response.StatusCode, body)
	}
}

// TestAccountComesBack removes an account while this server's part is made, and registers it again before the other part is there.
func TestAccountComesBack(t *testing.T) {
	w := newWorld(t, nil)
	var once sync.Once
	left := make(chan struct{})
	w.local.answer = func(rw http.ResponseWriter, r *http.Request) {
		body := `[{"account":"agents","name":"a"}]`
		once.Do(func() {
			w.accounts.remove(ourAccount)
			body = `[]`
			defer close(left)
		})
		answerJSON(http.StatusOK, body)(rw, r)
	}
	w.setTheirs(func(rw http.ResponseWriter, r *http.Request) {
		<-left
		w.accounts.set(ourAccount, registry.FirstSync{Settled: time.Now(), Complete: time.Now()})
		answerJSON(http.StatusOK, `[{"account":"theirs","name":"b"}]`)(rw, r)
	})
	checkNoHalf(t, w, "/applications/web/serverGroups", "agents")
}

// TestAccountsThatCannotBeReadNow checks a database that fails just when an account has left.
func TestAccountsThatCannotBeReadNow(t *testing.T) {
	w := newWorld(t, nil)
	w.answers(`[{"account":"agents","name":"a"}]`, `[{"account":"agents","name":"old"},{"account":"theirs","name":"b"}]`)
	w.send(t, http.MethodGet, "/applications/web/serverGroups", "")
	w.accounts.remove(ourAccount)
	w.local.answer = answerJSON(http.StatusOK, `[]`)
	w.accounts.fail(errors.New("too many connections"))
	checkNoHalf(t, w, "/applications/web/serverGroups", "agents")
}

// TestOldIndexGivesNoHalfAnswers checks an index whose lists have failed for hours while all else is answered.
func TestOldIndexGivesNoHalfAnswers(t *testing.T) {
	w := newWorld(t, nil)
	w.local.answer = ourAPI
	w.setTheirs(answerJSON(http.StatusOK, `[{"name":"agents"}]`))
	w.fetchAll(t)
	w.setTheirs(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/nobody") {
			answerJSON(http.StatusOK, `{"name":"nobody","clusters":{"theirs":[]}}`)(rw, r)
			return
		}
		answerJSON(http.StatusOK, `[{"account":"theirs","name":"x"}]`)(rw, r)
	})
	x := w.remote.answers.index
	x.accountsAt, x.appsAt = time.Now().Add(-20*time.Hour), time.Now().Add(-20*time.Hour)
	checkNoHalf(t, w, "/applications/nobody", "theirs")
	checkNoHalf(t, w, "/applications/web/serverGroups", "theirs")
}

// TestOperationsOfOtherProvidersAreNoted checks that an application that a streamed operation may create is looked for.
func TestOperationsOfOtherProvidersAreNoted(t *testing.T) {
	w := newWorld(t, nil)
	x := w.remote.answers.index
	x.setAccounts([]string{"theirs"}, time.Now())
	x.setApplications(map[string][]string{}, time.Now())
	w.send(t, http.MethodPost, "/aws/ops", `[{"createServerGroup":{"credentials":"theirs","application" : "fresh"}}]`)
	w.send(t, http.MethodPost, "/kubernetes/ops", `[{"deployManifest":{"account":"theirs","moniker":{"app":"`+strings.Repeat("x", 1<<20)+`"}}}]`)
	if x.hasApplication("fresh", &accountSet{}) != yes || len(x.mentioned) != 1 {
		t.Errorf("got %d applications, want the one with a usable name", len(x.mentioned))
	}
}

// TestHungListDelaysNoOther checks that each list is read by itself.
func TestHungListDelaysNoOther(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.RefreshInterval, c.Timeout = 10*time.Millisecond, time.Second })
	enough := make(chan struct{})
	var reads atomic.Int64
	w.setTheirs(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/stages") {
			hang(rw, r)
			return
		}
		if reads.Add(1) == 50 {
			close(enough)
		}
		answerJSON(http.StatusOK, `[]`)(rw, r)
	})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- w.remote.Run(ctx) }()
	<-enough
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestStoredInTheFuture checks an answer that was stored by a clock that was ahead.
func TestStoredInTheFuture(t *testing.T) {
	w := newWorld(t, nil)
	k, err := w.remote.answers.keep(t.Context(), accountNames, strings.NewReader(`[{"name":"a"}]`), time.Now().Add(time.Hour))
	if err != nil || k.fetched.After(time.Now()) {
		t.Errorf("got an answer of %v, %v, want one of now at most", k.fetched, err)
	}
}

// TestWaitingRequestsTakeLittle lets many requests wait for an upstream Clouddriver that does not answer.
func TestWaitingRequestsTakeLittle(t *testing.T) {
	w := newWorld(t, nil)
	w.local.answer = ourAPI
	x := w.remote.answers.index
	x.setAccounts([]string{"theirs"}, time.Now())
	x.setApplications(map[string][]string{"both": {"theirs"}}, time.Now())
	w.setTheirs(hang)
	var group sync.WaitGroup
	defer group.Wait()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	const waiting = 300
	for range waiting {
		group.Go(func() {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+"/applications/both/serverGroups", nil)
			if err != nil {
				t.Error(err)
				return
			}
			if response, err := http.DefaultTransport.RoundTrip(r); err == nil {
				response.Body.Close()
			}
		})
	}
	asked := 0
	for deadline := time.Now().Add(time.Minute); ; runtime.Gosched() {
		asked += len(w.theirs.requests())
		used := w.handler.client.memory.Used() // more for a moment, until a request waits
		if asked > 0 && used >= waiting*mergeBytes && used <= waiting*(16<<10) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("got %d bytes for %d requests of which %d have reached the upstream Clouddriver, want little", used, waiting, asked)
		}
	}
	if response, body := w.send(t, http.MethodGet, "/applications/ours/serverGroups", ""); response.StatusCode != http.StatusOK {
		t.Errorf("an application that only agents have: got %d %s", response.StatusCode, body)
	}
}

// TestManyNamesArePaidFor checks documents whose names take more memory than what is kept of them.
func TestManyNamesArePaidFor(t *testing.T) {
	var members, accounts strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&members, `,"%d%s":1`, i, strings.Repeat("x", 100))
		fmt.Fprintf(&accounts, `,"agents%d%s":[]`, i, strings.Repeat("x", 100))
	}
	for pattern, theirs := range map[string]string{
		"applications/{app}/clusters":     `{"a":[]` + accounts.String() + `}`,
		"applications/{app}/serverGroups": `[{"account":"theirs"` + members.String() + `}]`,
	} {
		local := "[]"
		if endpoint(t, pattern).stream.byAccount {
			local = "{}"
		}
		w := newWorld(t, func(c *Config) { c.MergeBytes = 8 << 20 })
		w.local.answer = answerJSON(http.StatusOK, local)
		w.setTheirs(answerJSON(http.StatusOK, theirs))
		response, body := w.send(t, http.MethodGet, "/"+strings.ReplaceAll(pattern, "{app}", "web"), "")
		checkUnavailableFor(t, pattern, response, body)
	}
}

func checkUnavailableFor(t *testing.T, pattern string, response *http.Response, body string) {
	t.Helper()
	if response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "needs more memory") {
		t.Errorf("%s: got %d with %d bytes, want an error for its memory", pattern, response.StatusCode, len(body))
	}
}

// TestLargeAnswersInTheBackground checks that a list which was empty, and now has an element without an end, is not read.
func TestLargeAnswersInTheBackground(t *testing.T) {
	w := newWorld(t, nil)
	var sent atomic.Int64
	w.setTheirs(func(rw http.ResponseWriter, _ *http.Request) {
		block := []byte(strings.Repeat("x", 64<<10))
		_, err := rw.Write([]byte(`["`))
		for err == nil {
			_, err = rw.Write(block)
			sent.Add(int64(len(block)))
		}
	})
	found := make(chan bool, 1)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/applications/ours/loadBalancers", nil)
	if err != nil {
		t.Fatal(err)
	}
	w.remote.answers.inBackground(t.Context(), "key", http.Header{}, r.URL, func(isEmpty bool) { found <- isEmpty })
	if <-found || sent.Load() > 64<<20 {
		t.Errorf("got an empty list after %d bytes, want it not empty", sent.Load())
	}
}

// TestSlowReaderOfALargeAnswer checks that a caller who does not read gives back the reserve of the memory.
func TestSlowReaderOfALargeAnswer(t *testing.T) {
	memory := spool.NewMemory(1 << 20)
	grant, err := memory.Acquire(t.Context(), "slow", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer grant.Release()
	w := &deadlineRecorder{ResponseWriter: httptest.NewRecorder()}
	m := &merge{w: w, grant: grant}
	if m.limitWriting(); !w.deadline.IsZero() {
		t.Errorf("got the deadline %v without the reserve, want none", w.deadline)
	}
	for range 2 { // beyond the share of a caller
		if err := grant.Grow(t.Context(), 200<<10); err != nil {
			t.Fatal(err)
		}
	}
	if m.limitWriting(); time.Until(w.deadline) > reserveWriteTime || w.deadline.IsZero() {
		t.Errorf("got the deadline %v with the reserve, want %s from now", w.deadline, reserveWriteTime)
	}
}

// deadlineRecorder records its write deadline.
type deadlineRecorder struct {
	http.ResponseWriter
	deadline time.Time
}

// SetWriteDeadline is called by http.ResponseController.
func (d *deadlineRecorder) SetWriteDeadline(t time.Time) error {
	d.deadline = t
	return nil
}

// TestRefusedConnectionIsForgotten checks that a request which has not reached the upstream Clouddriver is not sent there for ever.
func TestRefusedConnectionIsForgotten(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.BaseURL = "http://" + ports.Unused(t) })
	w.accounts.remove(ourAccount)
	post := func() (int, string) {
		response, body := w.send(t, http.MethodPost, "/kubernetes/ops?clientRequestId=1", "["+deployTo(ourAccount)+"]")
		return response.StatusCode, body
	}
	if code, body := post(); code != http.StatusServiceUnavailable {
		t.Errorf("got %d %s, want %d", code, body, http.StatusServiceUnavailable)
	}
	w.accounts.set(ourAccount, complete)
	if _, body := post(); body != "answer of own" {
		t.Errorf("after the takeover got %s, want this server's answer", body)
	}
}

// TestAnswerBeforeTheEndOfABody answers streamed operations before they have arrived. The race detector finds readers of what is kept
// of them.
func TestAnswerBeforeTheEndOfABody(t *testing.T) {
	hasty := httptest.NewServer(answerJSON(http.StatusRequestEntityTooLarge, `{}`))
	t.Cleanup(hasty.Close)
	w := newWorld(t, func(c *Config) { c.BaseURL = hasty.URL })
	for range 5 {
		body, writer := io.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				if _, err := io.WriteString(writer, `[{"x":{"application":"fresh"}}]`); err != nil {
					return
				}
			}
		}()
		w.handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/aws/ops", body))
		_ = body.Close()
		<-done
	}
	if w.remote.answers.index.hasApplication("fresh", &accountSet{}) == no {
		t.Error("the application is not noted")
	}
}
