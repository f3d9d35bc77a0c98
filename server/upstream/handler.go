package upstream

import (
	"net/http"
	"net/http/httputil"

	"github.com/klauspost/compress/gzhttp"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/middleware"
	"github.com/vedette-io/vedette/server/rest"
)

// Handler answers requests itself, passes them on, or merges both answers.
type Handler struct {
	local    http.Handler
	accounts *accountCache
	answers  *answers
	sides    *requestSides
	client   *client
	proxy    *httputil.ReverseProxy
	table    []Endpoint
	fail     middleware.RejectFunc
}

// New returns the handler of all of Clouddriver's paths. The handler local is that of package
// clouddriver, which submits operations to the same remote. Like local, the new one must not be
// registered with a ServeMux.
func New(remote *Remote, local http.Handler) http.Handler {
	c := remote.client
	h := &Handler{
		local: local, accounts: remote.accounts, answers: remote.answers, sides: newRequestSides(), client: c, table: Table(),
		fail: web.Fail(c.Log),
	}
	h.proxy = h.newProxy()
	return h
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r = middleware.LiteralSemicolons(r)
	found := findRoute(h.table, r.Method, r.URL.EscapedPath())
	middleware.SetRoute(r, found.name())
	if found.Mode == Local {
		h.serveLocal(w, r, found)
		return
	}
	err := h.check(r)
	if err == nil {
		err = h.checkReading(r, found)
	}
	if err != nil {
		h.fail(w, r, err)
		return
	}
	if err := h.client.guard.check(r.Header); err != nil {
		w.Header().Set(incompleteHeader, incompleteFor(reasonLoop))
		h.fail(w, r, err)
		return
	}
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h.serve(w, r, found); err != nil {
			h.fail(w, r, err)
		}
	})
	if found.merges() {
		gzhttp.GzipHandler(serve).ServeHTTP(w, r)
		return
	}
	serve.ServeHTTP(w, r)
}

// check rejects requests of web pages before they reach the upstream Clouddriver.
func (h *Handler) check(r *http.Request) error {
	if err := rest.CheckOrigin(r); err != nil {
		return err
	}
	if r.Method == http.MethodConnect || r.Method == http.MethodTrace {
		return vedette.Errorf(vedette.Invalid, "the method %s is not supported", r.Method)
	}
	return nil
}

// merges reports whether a request may have a merged answer.
func (r route) merges() bool {
	return r.Mode == Merged || r.Mode == ByProvider && isKubernetes(r.params[providerParam])
}

// isKubernetes reports whether a provider is that of agents' accounts. Requests without a provider
// are too, because the accounts in them decide.
func isKubernetes(provider string) bool { return provider == "" || provider == "kubernetes" }

// serve answers a request that this server does not always answer.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, found route) error {
	if provider, ok := found.params[providerParam]; ok && found.Mode != ByAccount && !isKubernetes(provider) {
		if found.Mode == ByOperations {
			return h.forwardOperations(w, r)
		}
		return h.forward(w, r)
	}
	switch found.Mode {
	case Merged, ByProvider:
		if found.Pattern == projectPattern && !h.client.HasProjects {
			return h.forward(w, r)
		}
		return h.serveMerged(w, r, found)
	case ByAccount:
		return h.serveByAccount(w, r, found.params[accountParam])
	case ByOperations:
		return h.serveOperations(w, r, found.params)
	case ByTask:
		return h.serveTask(w, r, found.params[taskParam])
	case ByID:
		return h.serveByID(w, r, found)
	case ByBody:
		return h.serveByBody(w, r)
	case ByArtifact:
		return h.serveArtifact(w, r, found.params[nameParam])
	case Local, PassedOn:
	}
	return h.forward(w, r)
}

// serveByAccount answers itself for an account of agents, and passes on the rest.
func (h *Handler) serveByAccount(w http.ResponseWriter, r *http.Request, account string) error {
	ours, err := h.accounts.current(r.Context())
	if err != nil {
		return err
	}
	if !ours.Has(account) {
		return h.forwardAccount(w, r, ours, account)
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.local.ServeHTTP(w, r)
		return nil
	}
	// An account that has left meanwhile looks like one without objects.
	local, later := newRecorder(w, nil), ours
	local.isRight = func() bool { //nolint:contextcheck // the recorder calls it during the request
		later, err = h.accounts.current(r.Context())
		return err == nil && later.Has(account) && later.owned[vedette.AccountName(account)].Equal(ours.owned[vedette.AccountName(account)])
	}
	h.local.ServeHTTP(local, r)
	switch {
	case err != nil:
		return err
	case !local.isDropped:
		return nil
	case later.Has(account): // it has left and come back
		return vedette.Errorf(vedette.Unavailable, "account %.300s was removed and registered again meanwhile: try again", account)
	}
	return h.forwardAccount(w, r, later, account)
}

// forwardAccount passes on a request about an account for which this server does not answer.
func (h *Handler) forwardAccount(w http.ResponseWriter, r *http.Request, ours *accountSet, account string) error {
	if err := checkArriving(r.Context(), h.accounts, ours, account); err != nil {
		return err
	}
	return h.forward(w, r)
}
