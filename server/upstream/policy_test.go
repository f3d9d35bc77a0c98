package upstream

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/registry"
)

// setTheirs changes what the upstream Clouddriver answers.
func (w *world) setTheirs(answer http.HandlerFunc) {
	w.theirs.mu.Lock()
	defer w.theirs.mu.Unlock()
	w.theirs.answer = answer
}

// expire makes the kept answers as old as if nobody had asked for a while.
func (w *world) expire(by time.Duration) {
	a := w.remote.answers
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.states {
		if s.kept != nil {
			s.kept.fetched = s.kept.fetched.Add(-by)
		}
		s.tried = s.tried.Add(-by)
	}
}

// awaitWhole sends a request until it has a whole answer, because a busy machine can be slower than the short timeouts.
func (w *world) awaitWhole(t *testing.T, path, want string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		response, body := w.send(t, http.MethodGet, path, "")
		isWhole := response.StatusCode == http.StatusOK && response.Header.Get(incompleteHeader) == ""
		if isWhole && body == want {
			return
		} else if isWhole || response.StatusCode != http.StatusOK && response.StatusCode != http.StatusServiceUnavailable || time.Now().After(deadline) {
			t.Fatalf("got %d %v %s, want %s", response.StatusCode, response.Header, body, want)
		}
	}
}

// TestEachEndpointFollowsItsPolicy checks each endpoint while the upstream Clouddriver does not answer, and after that.
func TestEachEndpointFollowsItsPolicy(t *testing.T) {
	for _, tt := range mergeCases {
		if tt.local == "" || tt.theirs == "" {
			continue
		}
		e := endpoint(t, tt.pattern)
		for _, partial := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, func(c *Config) { c.MergeTimeout, c.Timeout, c.Partial = 300*time.Millisecond, time.Second, partial })
				w.answers(tt.local, tt.theirs)
				w.awaitWhole(t, tt.path, tt.want)
				w.setTheirs(hang)
				w.expire(time.Hour)
				response, body := w.send(t, http.MethodGet, tt.path, "")
				isPartial := e.Policy == Partial && partial
				// The list of applications for a user is not that of another one.
				isLast := e.Policy == LastAnswer && tt.path != "/applications"
				age, _ := strconv.Atoi(response.Header.Get(ageHeader))
				switch {
				case isLast:
					if response.StatusCode != http.StatusOK || body != tt.want || age < 3600 || age > 3700 {
						t.Errorf("got %d %s with the age %d, want the last answer, an hour old", response.StatusCode, body, age)
					}
				case isPartial:
					if response.StatusCode != http.StatusOK || response.Header.Get(incompleteHeader) != incompleteFor(reasonTimeout) || strings.Contains(body, `"theirs":`) {
						t.Errorf("got %d %v %s, want this server's part, marked", response.StatusCode, response.Header, body)
					}
				default:
					checkUnavailable(t, response, body, reasonTimeout)
				}
				if !isPartial && response.Header.Get(incompleteHeader) != "" {
					t.Errorf("got the header %s", response.Header.Get(incompleteHeader))
				}
				w.expire(25 * time.Hour)
				if response, body := w.send(t, http.MethodGet, tt.path, ""); isLast {
					checkUnavailable(t, response, body, reasonTimeout) // too old
				}
				w.answers(tt.local, tt.theirs)
				w.expire(time.Hour)
				w.awaitWhole(t, tt.path, tt.want) // a request that hangs is waited for, and until then the last answer is given
			})
		}
	}
}

// arriving is an account of which some feeds have not been read yet, and settled one of which all are that its agent may read.
var (
	arriving = registry.FirstSync{}
	settled  = registry.FirstSync{Settled: time.Unix(1, 0)}
	complete = registry.FirstSync{Settled: time.Unix(1, 0), Complete: time.Unix(2, 0)}
)

// TestOneSideAnswersAMovingAccount follows each merged endpoint while an account that both know moves to an agent and back.
func TestOneSideAnswersAMovingAccount(t *testing.T) {
	for _, tt := range mergeCases {
		e := endpoint(t, tt.pattern)
		if tt.local == "" || tt.theirs == "" || !strings.Contains(tt.local, ourAccount) || !strings.Contains(tt.theirs, `"`+ourAccount+`"`) ||
			strings.Contains(tt.theirs, `{"account":7}`) {
			continue // only cases in which both sides have something of that account
		}
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.answers(tt.local, tt.theirs)
			w.accounts.set(ourAccount, arriving)
			before, err := join(t, e, nil, []byte(tt.theirs)) // hides the account: the other names are the same
			if err != nil {
				t.Fatal(err)
			}
			response, body := w.send(t, http.MethodGet, tt.path, "")
			if response.StatusCode != http.StatusOK || !strings.Contains(body, `"`+ourAccount+`"`) || body == tt.want || body == strings.TrimSpace(string(before)) {
				t.Errorf("while it is read: got %d %s, want the upstream Clouddriver's part of the account only", response.StatusCode, body)
			}
			w.accounts.set(ourAccount, complete)
			if _, body := w.send(t, http.MethodGet, tt.path, ""); body != tt.want {
				t.Errorf("after the takeover: got %s, want %s", body, tt.want)
			}
			w.accounts.set(ourAccount, arriving)
			if _, again := w.send(t, http.MethodGet, tt.path, ""); again != body {
				t.Errorf("after it was given back: got %s, want %s", again, body)
			}
		})
	}
}

// TestRequestsAboutAnArrivingAccount checks who answers about one account, depending on what both know about it.
func TestRequestsAboutAnArrivingAccount(t *testing.T) {
	const path = "/manifests/agents/shop/pod%20a"
	for _, tt := range []struct {
		name     string
		sync     registry.FirstSync
		accounts string // of the upstream Clouddriver; empty if it has not been asked
		want     string // who answers
	}{
		{"both have it, it is being read", arriving, `[{"name":"agents"}]`, "theirs"},
		{"only the agent has it, it is being read", arriving, `[]`, "503"},
		{"nothing is known of the upstream Clouddriver, it is being read", arriving, ``, "theirs"},
		{"both have it, the agent may not read all of it", settled, `[{"name":"agents"}]`, "theirs"},
		{"services take theirs for it, the agent may not read all of it", settled, `[{"name":"AGENTS"}]`, "theirs"},
		{"only the agent has it, and may not read all of it", settled, `[{"name":"other"}]`, "own"},
		{"nothing is known of the upstream Clouddriver, the agent may not read all of it", settled, ``, "theirs"},
		{"both have it, it is complete", complete, `[{"name":"agents"}]`, "own"},
		{"only the agent has it, it is complete", complete, `[]`, "own"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, func(c *Config) {
				c.Missing = func(_ context.Context, account vedette.AccountName) string {
					return "3 of 7 kinds of " + string(account)
				}
			})
			w.accounts.set(ourAccount, tt.sync)
			if tt.accounts != "" {
				w.setTheirs(answerJSON(http.StatusOK, tt.accounts))
				w.local.answer = answerJSON(http.StatusOK, `[]`)
				w.send(t, http.MethodGet, "/credentials?expand=true", "")
				w.local.answer = nil
				w.setTheirs(nil)
			}
			requests := map[string]string{path: http.MethodGet, "/kubernetes/ops": http.MethodPost, "/kubernetes/ops/scaleManifest": http.MethodPost,
				"/cache/kubernetes/manifest": http.MethodPost}
			bodies := map[string]string{path: "", "/kubernetes/ops": "[" + deployTo(ourAccount) + "]", "/kubernetes/ops/scaleManifest": `{"account":"agents"}`,
				"/cache/kubernetes/manifest": `{"account":"agents"}`}
			for path, method := range requests {
				response, body := w.send(t, method, path, bodies[path])
				if tt.want == "503" {
					if response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "3 of 7 kinds of agents") || response.Header.Get("Retry-After") == "" {
						t.Errorf("%s: got %d %s, want 503 with what is missing", path, response.StatusCode, body)
					}
				} else if body != "answer of "+tt.want {
					t.Errorf("%s: got %d %s, want the answer of %s", path, response.StatusCode, body, tt.want)
				}
			}
		})
	}
}

// TestAccountLeavesMeanwhile removes an account while this server's part of an answer is made, so that neither part has it.
func TestAccountLeavesMeanwhile(t *testing.T) {
	w := newWorld(t, nil)
	const theirs = `[{"account":"agents","name":"old"}]`
	w.setTheirs(answerJSON(http.StatusOK, theirs))
	asked := 0
	w.local.answer = func(rw http.ResponseWriter, r *http.Request) {
		asked++
		w.accounts.remove(ourAccount)
		answerJSON(http.StatusOK, `[]`)(rw, r)
	}
	if _, body := w.send(t, http.MethodGet, "/applications/web/serverGroups", ""); body != theirs || asked != 2 {
		t.Errorf("got %s after %d tries, want the upstream Clouddriver's part", body, asked)
	}
	w.local.answer = func(rw http.ResponseWriter, r *http.Request) {
		w.accounts.remove(ourAccount)
		answerJSON(http.StatusNotFound, notFoundBody)(rw, r)
	}
	w.accounts.set(ourAccount, complete)
	w.setTheirs(nil)
	if _, body := w.send(t, http.MethodGet, "/manifests/agents/shop/pod%20a", ""); body != "answer of theirs" {
		t.Errorf("one account: got %s, want the upstream Clouddriver's answer", body)
	}
	w.local.answer = func(rw http.ResponseWriter, r *http.Request) { // one after another
		w.accounts.remove(vedette.AccountName("a" + strconv.Itoa(asked)))
		asked++
		answerJSON(http.StatusOK, `[]`)(rw, r)
	}
	for i := range 20 {
		w.accounts.set(vedette.AccountName("a"+strconv.Itoa(i)), complete)
	}
	w.setTheirs(answerJSON(http.StatusOK, theirs))
	if response, body := w.send(t, http.MethodGet, "/applications/web/serverGroups", ""); response.StatusCode != http.StatusServiceUnavailable ||
		!strings.Contains(body, "are being removed") {
		t.Errorf("got %d %s, want 503", response.StatusCode, body)
	}
}

// TestAccountArrivesMeanwhile registers an account while this server's part of an answer is made, which then has a half of it.
func TestAccountArrivesMeanwhile(t *testing.T) {
	for _, path := range []string{"/serverGroups?ids=agents:shop:web", "/applications/web/serverGroups", "/applications/web"} {
		w := newWorld(t, nil)
		w.setTheirs(answerJSON(http.StatusOK, `[]`))
		if path == "/applications/web" {
			w.setTheirs(answerJSON(http.StatusNotFound, notFoundBody))
		}
		w.local.answer = func(rw http.ResponseWriter, r *http.Request) {
			w.accounts.set("new", arriving)
			body := `[{"account":"agents","name":"web"},{"account":"new","name":"half"}]`
			if path == "/applications/web" {
				body = `{"name":"web","clusters":{"agents":[],"new":["half"]}}`
			}
			answerJSON(http.StatusOK, body)(rw, r)
		}
		if response, body := w.send(t, http.MethodGet, path, ""); response.StatusCode != http.StatusOK || strings.Contains(body, "half") || !strings.Contains(body, "agents") {
			t.Errorf("%s: got %d %s, want it without the account that is being read", path, response.StatusCode, body)
		}
	}
}
