package server

import (
	"context"

	"github.com/vedette-io/vedette/server/store"
)

// tenancy is the time in which the database is this server's alone.
type tenancy struct {
	ctx    context.Context // ends with it
	cancel context.CancelFunc
	kept   chan error
}

// holdLease renews the database's lease until end is called, or another server has
// taken the database over. It goes on while the server stops, which writes too.
func (s *Server) holdLease(ctx context.Context, st *store.Store) *tenancy {
	held, cancel := context.WithCancel(context.WithoutCancel(ctx))
	h := &tenancy{ctx: held, cancel: cancel, kept: make(chan error, 1)}
	go func() {
		err := st.KeepLease(held)
		if err != nil {
			s.log.Error("the server ends: another one uses its database", "error", err)
		}
		cancel()
		h.kept <- err
	}()
	return h
}

// end returns why the tenancy ended before, if it did.
func (h *tenancy) end() error {
	h.cancel()
	return <-h.kept
}

// within returns a context that ends with the tenancy too.
func (h *tenancy) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(h.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}
