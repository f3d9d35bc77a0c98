package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/clouddriver/web"
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
	asks  bool // the upstream Clouddriver
}

// mergeBytes is what every merge takes. It takes more as bytes arrive, so that requests which wait for an upstream Clouddriver that does
// not answer take little.
const mergeBytes = 8 << 10

func (h *Handler) newMerge(ctx context.Context, w http.ResponseWriter, r *http.Request, found route) (*merge, error) {
	ours, err := h.accounts.exact(ctx)
	if err != nil {
		return nil, err
	}
	m := &merge{h, ctx, w, r, found, ours, nil, false}
	m.asks = m.mayAsk()
	memory := h.client.memory
	if !m.asks {
		memory = h.client.localMemory // which an upstream Clouddriver that does not answer cannot use up
	}
	if m.grant, err = memory.Acquire(ctx, readlimit.CallerOf(r).Source, mergeBytes); err != nil {
		return nil, unavailable(reasonBusy)
	}
	return m, nil
}

// serve answers, or returns errAccountLeft before it has written anything.
func (m *merge) serve() error {
	if !m.asks {
		return m.serveLocal()
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
	local, err := m.readLocal()
	if err != nil || local.isSent || m.r.Context().Err() != nil {
		return err // an error of this server does not wait for the upstream Clouddriver
	}
	p := <-theirs
	received = true
	defer p.close()
	return m.join(local, p)
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
		p.isLast = true
	}
	if p.isLast = p.isLast || l.kept.isLast; p.isLast {
		p.age = time.Since(l.kept.fetched)
	}
	return p
}

// localPart is this server's part of an answer.
type localPart struct {
	*recorder
	kept *spool.Spool // of a streamed answer with status 200: the elements; otherwise the body
}

// readLocal asks this server's API.
func (m *merge) readLocal() (localPart, error) {
	local := localPart{kept: spool.New(m.ctx, m.grant)}
	local.recorder = newRecorder(m.w, local.kept, http.StatusOK, http.StatusNotFound)
	ctx := web.WithoutAccounts(m.r.Context(), m.isNotOurs)
	inner := readRequest(m.r.WithContext(ctx))
	if m.found.stream == nil {
		m.local.ServeHTTP(local, inner)
		if err := local.finish(); err != nil {
			return local, unavailableLocal(err)
		}
		return local, nil
	}
	elements, write := io.Pipe()
	local.recorder.body = write
	done := make(chan error, 1)
	go func() {
		_, err := m.keep(elements, m.found.stream, local.kept, m.ours.Has)
		elements.CloseWithError(errors.Join(err, io.ErrClosedPipe)) // a write fails instead of waiting
		done <- err
	}()
	var err error
	func() {
		defer func() { // also if the handler panics: the grant must not grow after its release
			write.Close()
			err = <-done
		}()
		m.local.ServeHTTP(local, inner)
	}()
	if local.status != http.StatusOK {
		err = nil // nothing was written to the pipe
	}
	if err == nil {
		err = local.finish()
	}
	if err != nil {
		return local, unavailableLocal(err)
	}
	return local, nil
}

func (m *merge) isNotOurs(account vedette.AccountName) bool { return !m.ours.Has(string(account)) }

// join answers with both parts.
func (m *merge) join(local localPart, theirs part) error {
	switch f := theirs.rejection; {
	case m.found.isOfPlugin && theirs.isUnsupported:
		theirs.reason, theirs.rejection = "", nil
	case f == nil:
	case f.isMissing() && m.found.isMissingThere:
		theirs.reason, theirs.rejection = "", nil
	case f.status == http.StatusMethodNotAllowed && m.found.isOfPlugin: // of something in front of it
	case f.status != http.StatusNotFound:
		f.send(m.w) // to ask again could have another answer, which nobody has looked at
		return nil
	}
	write, err := m.found.joiner(m, local, theirs)
	reason := theirs.reason
	if err != nil {
		reason = m.client.reasonOfError(m.ctx, err)
	}
	if reason != "" {
		if m.found.Policy != Partial || !m.client.Partial || local.status != http.StatusOK {
			return unavailable(reason)
		}
		m.w.Header().Set(incompleteHeader, incompleteFor(reason))
		if write, err = m.found.joiner(m, local, part{}); err != nil {
			return unavailable(m.client.reasonOfError(m.ctx, err))
		}
	}
	later, err := m.accounts.exact(m.ctx)
	switch {
	case err != nil:
		return err
	case !m.ours.holdsLater(later):
		return errAccountLeft
	}
	if theirs.isLast {
		m.w.Header().Set(ageHeader, strconv.FormatInt(int64(theirs.age/time.Second), 10))
		m.client.stats.countLast()
	}
	m.limitWriting()
	return write()
}

// reserveWriteTime is how long a caller may take to read an answer that holds the reserve of the memory, for which others wait.
const reserveWriteTime = 10 * time.Second

// limitWriting ends the connection of a caller who makes others wait.
func (m *merge) limitWriting() {
	if m.grant.HoldsReserve() {
		// An error means that deadlines are not supported.
		_ = http.NewResponseController(m.w).SetWriteDeadline(time.Now().Add(reserveWriteTime))
	}
}

// serveLocal answers without the upstream Clouddriver.
func (m *merge) serveLocal() error {
	body := spool.New(m.ctx, m.grant)
	local := newRecorder(m.w, body, http.StatusOK, http.StatusNotFound, http.StatusNotModified)
	ctx := web.WithoutAccounts(m.r.Context(), m.isNotOurs)
	m.local.ServeHTTP(local, m.r.WithContext(ctx))
	if err := local.finish(); err != nil {
		return unavailableLocal(err)
	}
	if local.isSent {
		return nil
	}
	later, err := m.accounts.exact(m.ctx)
	switch {
	case err != nil:
		return err
	case !m.ours.holdsLater(later):
		return errAccountLeft
	case !m.ours.mayExceed(later):
		m.limitWriting()
		local.send(body)
		return nil
	}
	// The answer may have accounts for which this server does not answer yet.
	filtered, err := m.readLocal()
	if err != nil || filtered.isSent {
		return err
	}
	return m.join(filtered, part{})
}
