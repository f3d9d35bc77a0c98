package agent

import (
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
)

// Handler serves the health of an agent:
//
//	GET /health            200 while the agent is connected to its server, else 503
//	GET /health/readiness  the same
//	GET /health/liveness   200 as long as the agent's own loops turn, whatever its
//	                       server and clusters do; a restart would help against nothing else
//
// Accounts whose clusters can't be reached change nothing: another replica could do
// no better. Only requests from this machine (or pod), or with a trusted client
// certificate, get account names and errors, because errors name addresses and quote
// what answers there.
func Handler(a *Agent, log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	ready := func(w http.ResponseWriter, r *http.Request) {
		status := a.Status()
		answer := health{Health: "UP"}
		if status.Error != "" {
			answer.Health = "DOWN"
		}
		if isTrusted(r) {
			answer.Status = &status
		}
		answer.write(w, log)
	}
	mux.HandleFunc("GET /health", ready)
	mux.HandleFunc("GET /health/readiness", ready)
	mux.HandleFunc("GET /health/liveness", func(w http.ResponseWriter, _ *http.Request) {
		answer := health{Health: "UP"}
		if !a.liveness.isAlive() {
			answer.Health = "DOWN"
		}
		answer.write(w, log)
	})
	return mux
}

// health is the answer to all of them.
type health struct {
	Health  string `json:"status"`
	*Status        // nil where the caller may not know more
}

func (h health) write(w http.ResponseWriter, log *slog.Logger) {
	w.Header().Set("Content-Type", "application/json")
	if h.Health != "UP" {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	if err := json.NewEncoder(w).Encode(h); err != nil {
		log.Debug("answer not sent", "error", err)
	}
}

// isTrusted reports whether a caller may know what is wrong. One who comes from this
// machine by another name may be a page in a browser, whose name leads here.
func isTrusted(r *http.Request) bool {
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		return true
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !from.Addr().Unmap().IsLoopback() {
		return false
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	to, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && to.Unmap().IsLoopback()
}
