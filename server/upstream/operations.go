package upstream

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"sync"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/task"
)

// serveOperations decides by the accounts of the operations. Operations of both sides in one request
// become one task of this server, which submits a part upstream.
func (h *Handler) serveOperations(w http.ResponseWriter, r *http.Request, params map[string]string) error {
	raw, err := readBody(w, r)
	if err != nil {
		return err
	}
	requests, err := parseOperations(params, raw)
	if err != nil {
		h.local.ServeHTTP(w, r) // it reports the error
		return nil
	}
	foreign := 0
	for _, request := range requests {
		isForeign, err := isForeign(r.Context(), h.accounts, request, params[providerParam])
		if err != nil {
			return err
		}
		if isForeign {
			foreign++
		}
	}
	passOn := foreign > 0 && foreign == len(requests)
	// A request that is repeated after its account has moved goes to the side that has run it.
	passOn, forget := h.sides.decide(r, raw, passOn)
	if !passOn {
		h.local.ServeHTTP(w, r)
		return nil
	}
	r = r.WithContext(context.WithValue(r.Context(), notReachedKey{}, forget))
	for _, request := range requests {
		h.answers.index.mention(request.Applications()...)
	}
	return h.forward(w, r)
}

// forwardOperations passes on operations of another provider, whose bodies stream. It looks for the applications that they name in the
// first bytes, and takes any text for one that is where such a name can be.
func (h *Handler) forwardOperations(w http.ResponseWriter, r *http.Request) error {
	first := &prefix{limit: maxPrefixBytes}
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(r.Body, first), r.Body}
	defer func() { h.answers.index.mention(first.applications()...) }() // the proxy panics if the client leaves
	return h.forward(w, r)
}

const (
	maxPrefixBytes       = 256 << 10
	maxNamedApplications = 100
)

// namedApplication finds the members that name an application in the operations of all providers.
var namedApplication = regexp.MustCompile(`"(?:application|app)"\s*:\s*"([^"\\]{1,255})"`)

// prefix keeps the first bytes of what is written to it. A body may still be read after its request has been answered.
type prefix struct {
	limit int

	mu    sync.Mutex
	bytes []byte
}

func (p *prefix) applications() (names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, match := range namedApplication.FindAllSubmatch(p.bytes, maxNamedApplications) {
		names = append(names, string(match[1]))
	}
	return names
}

// Write implements io.Writer.
func (p *prefix) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes = append(p.bytes, b[:min(len(b), p.limit-len(p.bytes))]...)
	return len(b), nil
}

func parseOperations(params map[string]string, raw []byte) ([]task.Request, error) {
	if name, isOne := params[nameParam]; isOne {
		return task.ParseRequest(name, raw)
	}
	return task.ParseRequests(raw)
}

// isForeign reports whether the upstream Clouddriver executes an operation: its account is not one
// of agents. A description without an account is invalid for both; this server rejects it.
func isForeign(ctx context.Context, accounts *accountCache, request task.Request, provider string) (bool, error) {
	if provider == "" {
		provider = request.Provider()
	}
	account := string(request.Account())
	if !isKubernetes(provider) {
		return true, nil
	}
	if account == "" {
		return false, nil
	}
	known, err := accounts.current(ctx)
	if err != nil || known.Has(account) {
		return false, err
	}
	if err := checkArriving(ctx, accounts, known, account); err != nil {
		return false, err
	}
	for _, other := range request.Accounts() { // the upstream Clouddriver could prefer another member
		if known.Has(string(other)) {
			return false, vedette.Errorf(vedette.Invalid, "the operation %.60s names two accounts, %.100q and %.100q: name one", request.Name, account, other)
		}
	}
	return true, nil
}
