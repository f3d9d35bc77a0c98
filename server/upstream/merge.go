package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/upstream/spool"
)

// maxTries is how often an answer is made anew because an account has left meanwhile.
const maxTries = 3

// errAccountLeft reports that this server no longer answers for an account for which it did when the answer began. Then
// either part may lack that account.
var errAccountLeft = errors.New("an account of an agent has left")

// serveMerged answers for both sides. It asks the upstream Clouddriver only if that may have what is asked for.
func (h *Handler) serveMerged(w http.ResponseWriter, r *http.Request, found route) error {
	if err := checkPath(r.URL); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.client.MergeTimeout)
	defer cancel()
	for range maxTries {
		if err := h.tryMerge(ctx, w, r, found); !errors.Is(err, errAccountLeft) {
			return err
		}
	}
	return vedette.Errorf(vedette.Unavailable, "accounts of agents are being removed one after another: try again")
}

func (h *Handler) tryMerge(ctx context.Context, w http.ResponseWriter, r *http.Request, found route) error {
	m, err := h.newMerge(ctx, w, r, found)
	if err != nil {
		return err
	}
	defer m.grant.Release() // also if this server's handler panics
	return m.serve()        //nolint:contextcheck // the request's context is in merge
}

// merge is one try to answer for both sides.
type merge struct {
	*Handler
	ctx   context.Context //nolint:containedctx // that of one request
	w     http.ResponseWriter
	r     *http.Request
	found route
	ours  *accountSet
	grant *spool.Grant
}

// mergeBytes is what every merge takes: a spool for each side, and one window.
const mergeBytes = 2*spool.MinBytes + windowBytes

func (h *Handler) newMerge(ctx context.Context, w http.ResponseWriter, r *http.Request, found route) (*merge, error) {
	ours, err := h.accounts.current(ctx)
	if err != nil {
		return nil, err
	}
	grant, err := h.client.memory.Acquire(ctx, readlimit.CallerOf(r).Source, mergeBytes)
	if err != nil {
		return nil, unavailable(reasonBusy)
	}
	return &merge{h, ctx, w, r, found, ours, grant}, nil
}

// serve answers, or returns errAccountLeft before it has written anything.
func (m *merge) serve() error {
	if !m.mayAsk() {
		return m.serveOwn()
	}
	ctx, cancel := context.WithCancel(m.ctx)
	theirs := make(chan part, 1)
	go func() { theirs <- m.open(ctx) }()
	received := false
	defer func() { // also if this server's handler panics
		cancel()
		if !received {
			p := <-theirs
			p.close()
		}
	}()
	own, err := m.readOwn()
	if err != nil || own.isSent || m.r.Context().Err() != nil {
		return err // an error of this server does not wait for the upstream Clouddriver
	}
	p := <-theirs
	received = true
	defer p.close()
	return m.join(own, p)
}

// open returns the upstream Clouddriver's part.
func (m *merge) open(ctx context.Context) part {
	// Who sends credentials of their own gets what these allow, now. A request of another vedette-server must not become one that
	// has lost its way: a loop would not be noticed. That server keeps the last answer.
	hasCredentials := m.client.Username == "" && m.r.Header.Get("Authorization") != ""
	resource := resourceOf(m.r)
	if m.found.Policy != LastAnswer || resource == nil || hasCredentials || isOfServer(m.r.Header) {
		return m.client.open(ctx, m.r.Header, m.r.URL)
	}
	l := m.answers.latest(ctx, resource)
	if l.kept == nil {
		return part{reason: l.reason}
	}
	p := part{document: l.kept.document()}
	if l.reason != "" {
		p.isLast, p.age = true, time.Since(l.kept.fetched)
	}
	return p
}

// ownPart is this server's part of an answer.
type ownPart struct {
	*recorder
	kept *spool.Spool // of a streamed answer with status 200: the elements; otherwise the body
}

// readOwn asks this server's API.
func (m *merge) readOwn() (ownPart, error) {
	own := ownPart{kept: spool.New(m.ctx, m.grant)}
	own.recorder = newRecorder(m.w, own.kept, http.StatusOK, http.StatusNotFound)
	ctx := clouddriver.WithoutAccounts(m.r.Context(), m.isNotOurs)
	inner := readRequest(m.r.WithContext(ctx))
	if m.found.stream == nil {
		m.own.ServeHTTP(own, inner)
		if err := own.finish(); err != nil {
			return own, unavailableOwn(err)
		}
		return own, nil
	}
	elements, write := io.Pipe()
	own.recorder.body = write
	done := make(chan error, 1)
	go func() {
		_, err := m.keep(elements, m.found.stream, own.kept, m.ours.has)
		elements.CloseWithError(errors.Join(err, io.ErrClosedPipe)) // a write fails instead of waiting
		done <- err
	}()
	func() {
		defer write.Close()
		m.own.ServeHTTP(own, inner)
	}()
	err := <-done
	if own.status != http.StatusOK {
		err = nil // nothing was written to the pipe
	}
	if err == nil {
		err = own.finish()
	}
	if err != nil {
		return own, unavailableOwn(err)
	}
	return own, nil
}

func (m *merge) isNotOurs(account vedette.AccountName) bool { return !m.ours.has(string(account)) }

// join answers with both parts.
func (m *merge) join(own ownPart, theirs part) error {
	if theirs.isRefusal {
		return m.forward(m.w, m.r) // for the words of the refusal
	}
	write, err := m.found.joiner(m, own, theirs)
	reason := theirs.reason
	if err != nil {
		reason = m.client.reasonOfError(m.ctx, err)
	}
	if reason != "" {
		if m.found.Policy != Partial || !m.client.Partial || own.status != http.StatusOK {
			return unavailable(reason)
		}
		m.w.Header().Set(incompleteHeader, incompleteFor(reason))
		if write, err = m.found.joiner(m, own, part{}); err != nil {
			return unavailable(m.client.reasonOfError(m.ctx, err))
		}
	}
	later, err := m.accounts.current(m.ctx)
	switch {
	case err != nil:
		return err
	case !m.ours.keepsLater(later):
		return errAccountLeft
	}
	if theirs.isLast || theirs.age > 0 {
		m.w.Header().Set(ageHeader, strconv.FormatInt(int64(theirs.age/time.Second), 10))
		m.client.stats.countLast()
	}
	return write()
}

// serveOwn answers without the upstream Clouddriver.
func (m *merge) serveOwn() error {
	body := spool.New(m.ctx, m.grant)
	own := newRecorder(m.w, body, http.StatusOK, http.StatusNotFound, http.StatusNotModified)
	ctx := clouddriver.WithoutAccounts(m.r.Context(), m.isNotOurs)
	m.own.ServeHTTP(own, m.r.WithContext(ctx))
	if err := own.finish(); err != nil {
		return unavailableOwn(err)
	}
	if own.isSent {
		return nil
	}
	later, err := m.accounts.current(m.ctx)
	switch {
	case err != nil:
		return err
	case !m.ours.keepsLater(later):
		return errAccountLeft
	case !m.ours.mayExceed(later):
		own.send(body)
		return nil
	}
	// The answer may have accounts for which this server does not answer yet.
	filtered, err := m.readOwn()
	if err != nil || filtered.isSent {
		return err
	}
	return m.join(filtered, part{})
}
