package server

import (
	"context"

	"github.com/vedette-io/vedette/server/store"
)

// heldLease is the time in which the database is this server's alone.
type heldLease struct {
	ctx    context.Context // ends with it
	cancel context.CancelFunc
	done   chan error
}

// holdLease renews the database's lease until end is called, or another server has
// taken the database over. It goes on while the server stops, which writes too.
func (s *Server) holdLease(ctx context.Context, st *store.Store) *heldLease {
	leaseCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l := &heldLease{ctx: leaseCtx, cancel: cancel, done: make(chan error, 1)}
	go func() {
		err := st.KeepLease(leaseCtx)
		if err != nil {
			s.log.Error("the server ends: another one uses its database", "error", err)
		}
		cancel()
		l.done <- err
	}()
	return l
}

// release returns why the tenancy ended before, if it did.
func (l *heldLease) release() error {
	l.cancel()
	return <-l.done
}

// withContext returns a context that ends with the tenancy too.
func (l *heldLease) withContext(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(l.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}
