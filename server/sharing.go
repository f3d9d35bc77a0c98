package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/membership"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// newMembership returns what knows the servers that share the database with this one.
func newMembership(self vedette.ServerID, v *services, log *slog.Logger) *membership.Membership {
	return membership.New(membership.Config{Self: self, Store: v.store, Log: log, OnEnded: v.assignments.ServerEnded,
		Release: func(ctx context.Context) error {
			n, err := v.store.ReleaseEnded(ctx)
			if n > 0 {
				log.Info("released the accounts of servers that have ended", "accounts", n)
			}
			return err
		}})
}

// maxAnnounceWait bounds how long a server that stops tries to say so.
const maxAnnounceWait = 2 * time.Second

// announceDrain tells the other servers that this one stops, when ctx ends.
func announceDrain(ctx context.Context, st *store.Store) error {
	<-ctx.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxAnnounceWait)
	defer cancel()
	_ = st.SetServerState(ctx, sqldb.ServerDraining) // otherwise they find that it has ended
	return nil
}
