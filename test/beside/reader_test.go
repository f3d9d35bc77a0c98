package beside

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// clientTimeout is more than the server may take for any answer.
const clientTimeout = 90 * time.Second

// ownTimeout is how long an answer about agents' accounts may take while the upstream Clouddriver is frozen. It takes
// milliseconds on a machine that does nothing else, and 2 seconds if it waits for the merge timeout of shortTimeouts. On a
// loaded machine one answer may take longer; most of a reader's answers in a step must not.
const ownTimeout = 1500 * time.Millisecond

// readers ask without pause.
type readers struct {
	url        string
	ownership  *ownership
	violations *violations
	times      *errorTimes
	durations  *ownDurations
	frozen     *downtimes // of the upstream Clouddriver
	down       *downtimes // of the server
	step       func() string
	hasLabels  bool // labels of objects tell who has answered

	mu    sync.Mutex
	last  map[string]time.Time // when a path was last answered with status 200
	group sync.WaitGroup
}

// run asks until ctx ends. Between two requests it pauses.
func (r *readers) run(ctx context.Context, name string, pause time.Duration, next requestFunc) {
	r.group.Go(func() {
		for n := 0; sleep(ctx, pause); n++ {
			q := next(n)
			if q.path == "" {
				sleep(ctx, 100*time.Millisecond)
				continue
			}
			r.ask(ctx, name, q)
		}
	})
}

// answer is the end of a request.
type answer struct {
	began, ended time.Time
	status       int // 0 if there was no answer
	header       http.Header
	body         []byte
	err          error
}

func (a answer) String() string {
	if a.err != nil {
		return fmt.Sprintf("after %v: %v", a.ended.Sub(a.began).Round(time.Millisecond), a.err)
	}
	return fmt.Sprintf("after %v: status %d, Retry-After %q, X-Vedette-Incomplete %q, X-Vedette-Upstream-Age %q: %.300s", a.ended.Sub(a.began).Round(time.Millisecond),
		a.status, a.header.Get("Retry-After"), a.header.Get("X-Vedette-Incomplete"), a.header.Get("X-Vedette-Upstream-Age"), a.body)
}

// send sends a request as Orca does.
func send(ctx context.Context, method, address string, body io.Reader) answer {
	return sendWithin(ctx, clientTimeout, method, address, body)
}

func sendWithin(ctx context.Context, timeout time.Duration, method, address string, body io.Reader) answer {
	a := answer{began: time.Now()}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var sent *http.Request
	if sent, a.err = http.NewRequestWithContext(ctx, method, address, body); a.err != nil {
		return a
	}
	sent.Header.Set("Content-Type", "application/json")
	sent.Header.Set("X-SPINNAKER-USER", "orca")
	sent.Header.Set("X-SPINNAKER-ACCOUNTS", east+","+west)
	response, err := http.DefaultClient.Do(sent)
	if err == nil {
		a.status, a.header = response.StatusCode, response.Header
		a.body, err = io.ReadAll(response.Body)
		response.Body.Close()
	}
	a.err, a.ended = err, time.Now()
	return a
}

// ask sends a request, and judges the answer.
func (r *readers) ask(ctx context.Context, name string, q request) {
	step := r.step()
	a := send(ctx, http.MethodGet, r.url+q.path, nil)
	if ctx.Err() != nil {
		return // the test has ended
	}
	r.times.add(r.step(), name, a.began, a.ended, a.err != nil || a.status != http.StatusOK)
	violate := func(kind string) { r.violations.add(step, name, kind, "GET "+q.path+": "+a.String()) }
	if a.err != nil || a.status != http.StatusOK {
		if kind := r.judgeError(q, a); kind != "" {
			violate(kind)
		}
		return
	}
	r.keep(q.path, a.ended)
	if value := a.header.Get("X-Vedette-Incomplete"); value != "" {
		violate("is marked as incomplete")
	}
	if age := a.header.Get("X-Vedette-Upstream-Age"); age != "" {
		if _, err := strconv.ParseFloat(age, 64); err != nil {
			violate("has an X-Vedette-Upstream-Age that is not a number")
		}
	}
	entries, problems := q.check(a.body)
	for _, problem := range problems {
		r.violations.add(step, name, withoutNames(problem), problem+": GET "+q.path+": "+a.String())
	}
	for _, e := range entries {
		if e.byLabel && !r.hasLabels {
			continue
		}
		if kind := r.ownership.observe(e.account, e.owner, a.began, a.ended); kind != "" {
			violate(kind)
		}
	}
	if r.isAgents(q, a) && r.frozen.overlap(a.began, a.ended) {
		r.durations.add(step, name, "GET "+q.path+": "+a.String(), a.ended.Sub(a.began))
	}
}

// isAgents reports whether a request is about an account that agents have, or about what the server has itself.
func (r *readers) isAgents(q request, a answer) bool {
	return q.isOwn || q.account != "" && r.ownership.isOwned(q.account, a.began)
}

// judgeError returns why an error must not be; "" if it may be.
func (r *readers) judgeError(q request, a answer) string {
	isDown, isFrozen := r.down.overlap(a.began, a.ended), r.frozen.overlap(a.began, a.ended)
	switch {
	case a.err != nil && isDown:
		return ""
	case errors.Is(a.err, context.DeadlineExceeded):
		return "gets no answer"
	case a.err != nil:
		return "fails although the server runs"
	case a.status != http.StatusServiceUnavailable:
		return fmt.Sprintf("gets status %d", a.status)
	case a.header.Get("Retry-After") == "" && q.account == "" && !q.isTask():
		return "gets status 503 without Retry-After"
	case isDown:
		return ""
	case !isFrozen:
		return "gets status 503 although the upstream Clouddriver answers"
	case r.isAgents(q, a):
		return "is about agents' accounts, and gets status 503 because the upstream Clouddriver is frozen"
	case q.keepsLast && r.hasLast(q.path):
		return "gets status 503 although there is a last complete answer"
	}
	return ""
}

func (r *readers) keep(path string, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		r.last = map[string]time.Time{}
	}
	r.last[path] = at
}

// hasLast reports whether a path was answered since the server was last started.
func (r *readers) hasLast(path string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, ok := r.last[path]
	return ok && at.After(r.down.last())
}
