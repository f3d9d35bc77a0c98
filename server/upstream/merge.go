package upstream

import (
	"context"
	"fmt"
	"net/http"

	"github.com/cespare/xxhash/v2"

	"github.com/vedette-io/vedette/internal/etag"
	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/server/readlimit"
)

// incompleteHeader says that a merged answer lacks the part of the upstream Clouddriver, and why:
// "upstream; reason=timeout".
const incompleteHeader = "X-Vedette-Incomplete"

// incompleteFor returns the value of incompleteHeader.
func incompleteFor(reason string) string { return "upstream; reason=" + reason }

// serveMerged asks this server and the upstream Clouddriver at the same time, and answers with both
// answers merged. If the upstream Clouddriver does not answer in time, it answers without it.
func (h *Handler) serveMerged(w http.ResponseWriter, r *http.Request, merge mergeFunc) error {
	accounts, err := h.accounts.current(r.Context())
	if err != nil {
		return err
	}
	if err := checkPath(r.URL); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	caller := readlimit.CallerOf(r).Source
	theirs := make(chan answer, 1)
	received := false
	defer func() { // if this server's handler panics
		if !received {
			cancel()
			(<-theirs).release()
		}
	}()
	go func() { theirs <- h.client.read(ctx, r, &allowance{budget: h.client.memory, caller: caller}) }()
	own := &recorder{capture: newCapture(), client: w, memory: &allowance{budget: h.client.memory, caller: caller},
		keeps: []int{http.StatusOK, http.StatusNotFound}}
	defer own.memory.release()
	h.own.ServeHTTP(own, readRequest(r))
	hasLeft := r.Context().Err() != nil // then this server writes no answer
	own.WriteHeader(http.StatusOK)
	isDone := own.sent || hasLeft
	if isDone {
		cancel()
	}
	a := <-theirs
	received = true
	defer a.release()
	switch {
	case isDone:
		return nil
	case own.status == http.StatusNotFound && a.isRefusal:
		return h.forward(w, r) // for the words of the refusal
	}
	return h.client.combine(w, r, merge, pair{accounts, own.capture, a})
}

// pair is both answers to a request.
type pair struct {
	accounts *accountSet
	own      *capture // with status 200 or 404
	theirs   answer
}

// combine sends the merged answer. If only the upstream Clouddriver may know what was asked for, and
// it does not answer, the request fails: after a 404 Orca would delete an application.
func (c *client) combine(w http.ResponseWriter, r *http.Request, merge mergeFunc, p pair) error {
	if p.theirs.body != nil {
		merged, err := mergeAnswers(merge, p)
		switch {
		case err != nil:
			c.stats.reject(reasonInvalid, err)
			p.theirs.reason = reasonInvalid
		case merged != nil:
			p.own.status, p.own.body = http.StatusOK, merged
		}
	}
	isMissing, reason := p.own.status == http.StatusNotFound, p.theirs.reason
	switch {
	case isMissing && reason != "":
		return unavailable(reason)
	case isMissing:
		p.own.copyTo(w)
		return nil
	case reason != "":
		w.Header().Set(incompleteHeader, incompleteFor(reason))
	}
	etag.Write(w, r, p.own.body, xxhash.Sum64(p.own.body))
	return nil
}

// mergeAnswers merges two JSON documents. The result is nil if neither side knows what was asked
// for.
func mergeAnswers(merge mergeFunc, p pair) ([]byte, error) {
	// Readers take the first or the last of two members with one name: one of them could be an account
	// of agents.
	if err := exactjson.Check(p.theirs.body); err != nil {
		return nil, fmt.Errorf("check the answer: %w", err)
	}
	m := &merger{accounts: p.accounts}
	if p.own.status == http.StatusOK {
		m.own = p.own.body
	}
	m.theirs = p.theirs.body
	m.out = make([]byte, 0, len(m.own)+len(m.theirs)+len("[]\n"))
	if err := merge(m); err != nil || m.isNothing {
		return nil, err
	}
	return append(m.out, '\n'), nil
}
