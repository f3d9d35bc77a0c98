package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/fair"
	"github.com/vedette-io/vedette/server/dispatch"
	"github.com/vedette-io/vedette/server/store/history"
	"github.com/vedette-io/vedette/wire"
)

// The paths of the predecessor. They are signed as they are here, whatever a gateway makes of them.
const (
	operationPath = "/armory/agent/operations"
	resultPath    = "/armory/agent/operationresults"
)

// forwardDispatcher relays operations to the agents of this server, and takes the outcomes of those that it has given to others.
type forwardDispatcher interface {
	Relay(ctx context.Context, r dispatch.RelayRequest) (*dispatch.Relay, error)
	HandleForwarded(ctx context.Context, from vedette.ServerID, out vedette.Outcome) error
}

// operationRows are the operations that servers have accepted.
type operationRows interface {
	Operation(ctx context.Context, id vedette.OperationID) (history.Operation, error)
}

// ForwardingConfig has what Forwarding needs besides Config.
type ForwardingConfig struct {
	Config
	Dispatch forwardDispatcher
	Rows     operationRows
	// URL returns the base URL of a server's REST API.
	URL func(vedette.ServerID) (string, bool)
	// Transport sends results; nil for one without proxies that trusts the system's authorities.
	Transport http.RoundTripper
	Log       *slog.Logger
}

// Forwarding takes operations and results of other servers over REST, in the predecessor's form. An operation goes to an agent of this
// server or to none, as over gRPC, and its outcome is sent to the server that has accepted it.
type Forwarding struct {
	cfg        ForwardingConfig
	challenges *challenges
	client     *http.Client
	memory     *fair.Line

	mu      sync.Mutex
	count   int  // operations under way
	isEnded bool // no further one begins
	running sync.WaitGroup
	ctx     context.Context //nolint:containedctx // of operations under way; ends with Run
	cancel  context.CancelFunc
}

const (
	// maxForwarded is how many operations and results may be under way.
	maxForwarded = 16
	// resultMemory is what all outcomes and their texts may take; a server may have half of it.
	resultMemory = 96 << 20
	// resultCopies is how often the bytes of an outcome are in memory: as they came, in its text, and in the body.
	resultCopies = 12
	resultBytes  = 64 << 10 // of each, besides
	// resultTime is how long it is tried to send a result. Then the server that waits for it has given up, too, or asks again.
	resultTime = 15 * time.Second
	// resultTimeout is how long a server may take for one request.
	resultTimeout = 5 * time.Second
)

// NewForwarding returns a Forwarding. Run must be called.
func NewForwarding(cfg ForwardingConfig) *Forwarding {
	cfg.defaults()
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Transport == nil {
		cfg.Transport = &http.Transport{TLSHandshakeTimeout: resultTimeout, ResponseHeaderTimeout: resultTimeout, IdleConnTimeout: time.Minute,
			MaxResponseHeaderBytes: 64 << 10}
	}
	client := &http.Client{Transport: cfg.Transport, Timeout: resultTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	f := &Forwarding{cfg: cfg, challenges: newChallenges(), client: client,
		memory: fair.New(fair.Config{Capacity: resultMemory, Share: resultMemory / 2, Queue: maxForwarded, Wait: resultTime})}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	return f
}

// Run waits for operations that are under way when ctx ends, which then end soon.
func (f *Forwarding) Run(ctx context.Context) error {
	<-ctx.Done()
	f.mu.Lock()
	f.isEnded = true
	f.mu.Unlock()
	f.cancel()
	f.running.Wait()
	return nil
}

// begin reserves a place for an operation, until end is called.
func (f *Forwarding) begin() (end func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.isEnded || f.count >= maxForwarded {
		return nil, vedette.Errorf(vedette.Unavailable, "this server stops, or passes on %d operations of other servers over REST already: try again", maxForwarded)
	}
	f.count++
	f.running.Add(1)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.count--
		f.running.Done()
	}, nil
}

// Operation answers POST /armory/agent/operations, when the agent has the operation. Its outcome comes later.
func (f *Forwarding) Operation(w http.ResponseWriter, r *http.Request) error {
	caller, err := f.challenges.verify(&f.cfg.Config, operationPath, r)
	if err != nil {
		return err
	}
	end, err := f.begin()
	if err != nil {
		return err
	}
	hasBegun := false
	defer func() {
		if !hasBegun {
			end()
		}
	}()
	raw, err := caller.readBody(w, r, "operation", maxTextBody)
	if err != nil {
		return err
	}
	encoded, err := parseOperation(raw)
	if err != nil {
		return err
	}
	op := wire.ToOperation(encoded, caller.given) // time counts from the challenge, by this server's clock
	if err := f.checkAccepted(r.Context(), caller.from.ID, op); err != nil {
		return err
	}
	relay, err := f.cfg.Dispatch.Relay(r.Context(), dispatch.RelayRequest{From: caller.from.ID, Operation: op.ID, Account: op.Account,
		Documents: int64(len(raw))})
	if err != nil {
		return err
	}
	switch {
	case !runs(f.cfg.Members, caller.from): // it may have been evicted meanwhile
		relay.Close()
		return &UnprovenError{"server " + string(caller.from.ID) + " does not run any more", f.challenges.issue()}
	case op.Cluster != relay.Cluster():
		relay.Close()
		return vedette.Errorf(vedette.Conflict, "operation %.60q names no cluster, or another one than account %.300q has", string(op.ID), string(op.Account))
	}
	if err := relay.Send(op); err != nil { //nolint:contextcheck // its changes are stored even if the caller has left
		relay.Close()
		return err
	}
	hasBegun = true
	go func() {
		defer end()
		defer relay.Close()
		f.finish(relay, caller.from, op)
	}()
	w.WriteHeader(http.StatusOK)
	return nil
}

// checkAccepted returns an error unless the sender has accepted the operation: what changes something is recorded before it is sent, so
// that nothing happens that the history does not have.
func (f *Forwarding) checkAccepted(ctx context.Context, from vedette.ServerID, op vedette.Operation) error {
	if op.Args == nil {
		return vedette.Errorf(vedette.Invalid, "this server is too old for the verb of operation %.60q: upgrade it", string(op.ID))
	}
	if _, isLogs := op.Args.(vedette.LogsArgs); isLogs {
		return vedette.Errorf(vedette.Invalid, "operation %.60q reads a log, which has no end that could be sent as a result", string(op.ID))
	}
	if op.Reads() {
		return nil
	}
	row, err := f.cfg.Rows.Operation(ctx, op.ID)
	if err != nil && vedette.KindOf(err) != vedette.NotFound {
		return err
	}
	isSame := row.Account == op.Account && row.Verb == op.Args.Verb() && row.DryRun == op.DryRun
	if err != nil || row.Server != from || row.State != history.Pending || !isSame {
		return vedette.Errorf(vedette.Conflict, "operation %.60q is not one that server %.253q has accepted and waits for: the history has no such %s in account %.300q",
			string(op.ID), string(from), op.Args.Verb(), string(op.Account))
	}
	return nil
}

// finish waits for the outcome, and sends it. The agent may forget it when the other server has it. Otherwise it keeps it, and answers
// again when it is asked again.
func (f *Forwarding) finish(relay *dispatch.Relay, to Peer, op vedette.Operation) {
	var out vedette.Outcome
	select {
	case e, ok := <-relay.Events():
		if !ok {
			return // the agent is gone, or did not answer in time: the other server finds that itself
		}
		grant, err := f.memory.Acquire(f.ctx, string(to.ID), costOf(e))
		if err == nil {
			defer grant.Release()
			out, err = outcomeOf(e)
		}
		if err != nil {
			closeEvent(e)
			f.cfg.Log.Warn("the outcome of another server's operation was not read: that server asks again, or says that it is lost", "operation", op.ID,
				"server", to.ID, "error", err)
			return
		}
	case <-f.ctx.Done():
		return
	}
	out.ID = op.ID
	body, err := formatResult(out, op.Reads())
	if err == nil {
		err = f.sendResult(f.ctx, to, body)
	}
	if err != nil {
		f.cfg.Log.Warn("the outcome of another server's operation was not sent: that server asks again, or says that it is lost", "operation", op.ID,
			"server", to.ID, "error", err)
		return
	}
	relay.Acknowledge()
}

// costOf returns the memory that an outcome takes until it is sent.
func costOf(e dispatch.RelayEvent) int64 {
	if e.Encoded != nil {
		return resultBytes + resultCopies*maxResultBytes
	}
	return resultBytes + resultCopies*int64(min(sizeOf(e.Outcome), maxResultBytes))
}

// closeEvent closes what is not read.
func closeEvent(e dispatch.RelayEvent) {
	if e.Encoded != nil {
		_ = e.Encoded.Close() // nobody reads it
	}
	if e.Outcome.Stream != nil {
		_ = e.Outcome.Stream.Close() // nobody reads it
	}
}

// outcomeOf returns a whole outcome.
func outcomeOf(e dispatch.RelayEvent) (vedette.Outcome, error) {
	if e.Encoded == nil {
		if e.Outcome.Stream != nil {
			return vedette.Outcome{}, errors.New("it is a log")
		}
		return e.Outcome, nil
	}
	defer e.Encoded.Close()
	raw, err := io.ReadAll(io.LimitReader(e.Encoded, maxResultBytes+1))
	if err != nil {
		return vedette.Outcome{}, fmt.Errorf("read it: %w", err)
	}
	var encoded wire.Outcome
	if len(raw) > maxResultBytes {
		return tooLarge(), nil
	}
	if err := wire.Unmarshal(raw, &encoded); err != nil {
		return vedette.Outcome{}, fmt.Errorf("read it: %w", err)
	}
	return wire.ToOutcome(&encoded), nil
}

// sendResult sends a result, again if it fails for a reason that may pass.
func (f *Forwarding) sendResult(ctx context.Context, to Peer, body []byte) error {
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		if !runs(f.cfg.Members, to) {
			return struct{}{}, backoff.Permanent(fmt.Errorf("server %s has ended", to.ID))
		}
		return struct{}{}, f.post(ctx, to, resultPath, body)
	}, backoff.WithMaxElapsedTime(resultTime))
	return err
}

// post sends a request to another server: first without a proof, to get a challenge.
func (f *Forwarding) post(ctx context.Context, to Peer, path string, body []byte) error {
	base, ok := f.cfg.URL(to.ID)
	if !ok {
		return backoff.Permanent(fmt.Errorf("server %s has no address", to.ID))
	}
	url := strings.TrimRight(base, "/") + path
	asked, err := f.send(ctx, url, nil, "")
	if err != nil {
		return err
	}
	if asked.status != http.StatusUnauthorized || asked.challenge == "" {
		return backoff.Permanent(fmt.Errorf("server %s answers %d at %s: set server.peers.restOperations there", to.ID, asked.status, url))
	}
	authorization, err := f.cfg.Identity.prove(http.MethodPost, path,
		proof{From: f.cfg.Self, To: to.ID, Challenge: asked.challenge, Digest: digestOf(body)})
	if err != nil {
		return backoff.Permanent(err)
	}
	answer, err := f.send(ctx, url, body, authorization)
	switch {
	case err != nil:
		return err
	case answer.status >= http.StatusInternalServerError, answer.status == http.StatusUnauthorized:
		return fmt.Errorf("server %s answers %d", to.ID, answer.status)
	case answer.status != http.StatusOK:
		return backoff.Permanent(fmt.Errorf("server %s answers %d: %s", to.ID, answer.status, vedette.CleanText(answer.text, maxReason)))
	}
	return nil
}

// restAnswer is what is used of an answer.
type restAnswer struct {
	status    int
	challenge string // empty without one
	text      string // the beginning of the body, for the log
}

// send sends one request.
func (f *Forwarding) send(ctx context.Context, url string, body []byte, authorization string) (restAnswer, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return restAnswer{}, backoff.Permanent(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	response, err := f.client.Do(r)
	if err != nil {
		return restAnswer{}, fmt.Errorf("send a result to another server: %w", err)
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxReason)) // some words are better than none
	return restAnswer{response.StatusCode, challengeOf(response.Header.Get("WWW-Authenticate")), string(text)}, nil
}

// challengeOf returns the challenge in a WWW-Authenticate header, or "".
func challengeOf(header string) string {
	text, ok := strings.CutPrefix(header, proofScheme+` challenge="`)
	text, isClosed := strings.CutSuffix(text, `"`)
	if raw, err := strictBase64.DecodeString(text); !ok || !isClosed || err != nil || len(raw) != challengeSize {
		return ""
	}
	return text
}

// Result answers POST /armory/agent/operationresults.
func (f *Forwarding) Result(w http.ResponseWriter, r *http.Request) error {
	caller, err := f.challenges.verify(&f.cfg.Config, resultPath, r)
	if err != nil {
		return err
	}
	end, err := f.begin()
	if err != nil {
		return err
	}
	defer end()
	raw, err := caller.readBody(w, r, "result", maxTextBody)
	if err != nil {
		return err
	}
	out, err := parseResult(raw)
	if err != nil {
		return err
	}
	if err := f.cfg.Dispatch.HandleForwarded(r.Context(), caller.from.ID, out); err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	return nil
}
