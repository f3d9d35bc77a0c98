package server

import (
	"context"
	"errors"

	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// heldLease is the lease of the database while this server holds it.
type heldLease struct {
	ctx    context.Context // ends when the lease is lost or released
	cancel context.CancelFunc
	done   chan error
}

// holdLease renews the database's lease until release is called or another server takes the
// database over. It continues while the server stops, because stopping also writes.
func (s *Server) holdLease(ctx context.Context, st *store.Store) *heldLease {
	leaseCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cfg.Metrics.LeaseHeld(true)
	l := &heldLease{ctx: leaseCtx, cancel: cancel, done: make(chan error, 1)}
	go func() {
		err := st.KeepLease(leaseCtx)
		switch {
		case errors.Is(err, sqldb.ErrHistory):
			s.log.Error("stopping: another database server has taken over", "error", err)
		case err != nil:
			s.log.Error("stopping: the lease of the database is lost", "error", err)
		}
		s.cfg.Metrics.LeaseHeld(false)
		cancel()
		l.done <- err
	}()
	return l
}

// release gives up the lease. It returns the reason if the lease was lost before.
func (l *heldLease) release() error {
	l.cancel()
	return <-l.done
}

// withContext returns a context that also ends when the lease ends.
func (l *heldLease) withContext(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(l.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}
