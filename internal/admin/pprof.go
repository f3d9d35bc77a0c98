package admin

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strconv"

	"github.com/vedette-io/vedette/internal/httpserver"
	"github.com/vedette-io/vedette/internal/logthrottle"
)

// Profiles configures the port of Go's profiles.
type Profiles struct {
	Host  string // where to listen if the guard has a token; without one only the loopback address is safe
	Port  int
	TLS   *tls.Config // nil for plain HTTP
	Guard Guard
}

// Address returns where to listen. Profiles show names of accounts and parts of memory, so other
// machines cannot even connect unless there is a token to send.
func (p Profiles) Address() string {
	host := p.Host
	if !p.Guard.HasToken() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, strconv.Itoa(p.Port))
}

// Listen opens the port.
func (p Profiles) Listen() (net.Listener, error) {
	listener, err := net.Listen("tcp", p.Address())
	if err != nil {
		return nil, fmt.Errorf("listen for profiles: %w: set pprof.port to a free port", err)
	}
	return listener, nil
}

// Serve serves profiles on a listener until ctx ends.
func (p Profiles) Serve(ctx context.Context, listener net.Listener, log *slog.Logger) error {
	srv := httpserver.New(p.Guard.Require(ProfileHandler()), p.TLS)
	if err := httpserver.Serve(ctx, srv, httpserver.Limit(srv, listener, logthrottle.Logger(log)), 0, log); err != nil {
		return fmt.Errorf("serve profiles on %s: %w", listener.Addr(), err)
	}
	return nil
}

// ProfileHandler returns the handler of /debug/pprof/, for go tool pprof.
func ProfileHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", http.NotFound) // flags may hold what a log must not
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}
