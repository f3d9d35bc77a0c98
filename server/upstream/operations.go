package upstream

import (
	"context"
	"net/http"

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
		h.own.ServeHTTP(w, r) // it reports the error
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
	if passOn = h.sides.decide(r, raw, passOn); !passOn {
		h.own.ServeHTTP(w, r)
		return nil
	}
	for _, request := range requests {
		for _, application := range request.Applications() {
			h.answers.index.mention(application)
		}
	}
	return h.forward(w, r)
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
	if err != nil || known.has(account) {
		return false, err
	}
	if err := checkArriving(ctx, accounts, known, account); err != nil {
		return false, err
	}
	for _, other := range request.Accounts() { // the upstream Clouddriver could prefer another member
		if known.has(string(other)) {
			return false, vedette.Errorf(vedette.Invalid, "the operation %.60s names two accounts, %.100q and %.100q: name one", request.Name, account, other)
		}
	}
	return true, nil
}
