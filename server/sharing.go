package server

import (
	"context"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/assigner"
	"github.com/vedette-io/vedette/server/coherence"
	"github.com/vedette-io/vedette/server/membership"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/versions"
	"github.com/vedette-io/vedette/server/task"
)

// shareDatabase adds what a server needs that shares its database with others.
func (s *Server) shareDatabase(v *services) {
	ended := func(id vedette.ServerID) {
		v.assignments.ServerEnded(id)
		v.tasks.ServerEnded(id)
	}
	v.members = membership.New(membership.Config{Self: s.cfg.ID, Store: v.store, Log: s.log, OnEnded: ended,
		Release: func(ctx context.Context) error { return s.releaseEnded(ctx, v.store) }})
	v.assignments.Share(assigner.Sharing{Servers: v.members, IsAlive: v.members.IsAlive,
		Listen: func(ctx context.Context, to vedette.ServerID) (func() (assigner.Update, error), error) {
			return v.peers.client.Listen(ctx, to)
		}})
	v.coherence = coherence.New(coherence.Config{Token: v.store.ServerToken(), Servers: v.members, WantsChanges: v.hub.HasSubscribers,
		Log: s.log,
		Take: func(e coherence.Entry) {
			if e.Effect != nil {
				v.store.PublishOtherServer(*e.Effect)
			}
			v.hub.PublishOther(e.Changes)
		},
		TakeAll: func() { v.store.PublishAll(); v.hub.Lose() },
		Open: func(ctx context.Context, to sqldb.SharingServer) (coherence.Stream, error) {
			return v.peers.client.Follow(ctx, to.ID)
		}})
	v.store.SetSharing(versions.Sharing{IsCurrent: v.coherence.IsCurrent, Published: func(e *versions.Effect) {
		m := e.Message()
		v.coherence.Publish(coherence.Entry{Effect: &m})
	}})
	v.hub.OnAwait(v.coherence.AwaitChanges)
	v.hub.OnPublish(func(changes []commit.Change) { v.coherence.Publish(coherence.Entry{Changes: changes}) })
}

// shareTasks returns what tasks need of the other servers.
func (s *Server) shareTasks(v *services) *task.Sharing {
	return &task.Sharing{Process: v.store.ServerToken(), Peers: v.peers.client, Resume: v.dispatcher.Resume, KnownUID: v.dispatcher.KnownUID,
		Changed: v.members.Changed,
		Candidates: func() (others []vedette.ServerID) {
			for id, row := range v.members.Current() {
				if id != s.cfg.ID && row.State == sqldb.ServerRunning {
					others = append(others, id)
				}
			}
			return others
		},
		IsAlive: func(ctx context.Context, server vedette.ServerID, process string) bool {
			return v.members.IsProcessAlive(ctx, server, func(token string) bool { return task.IsProcess(process, token) })
		},
		Remote: func(caller []byte) (task.Remote, error) {
			if v.remote == nil {
				return nil, vedette.Errorf(vedette.Invalid, "this server has no upstream Clouddriver, other than the one that accepted the task")
			}
			return v.remote.Again(caller)
		}}
}

// releaseEnded releases the accounts of servers that have ended.
func (s *Server) releaseEnded(ctx context.Context, st *store.Store) error {
	n, err := st.ReleaseEnded(ctx)
	if n > 0 {
		s.log.Info("released the accounts of servers that have ended", "accounts", n)
	}
	return err
}

// Reports returns what the agents of this server report.
func (v *services) Reports() []coherence.Report {
	var all []coherence.Report
	for _, f := range v.assignments.ReportedAccounts() {
		all = append(all, coherence.Report{Account: f.Account, FreshAt: f.FreshAt, CompleteAt: f.CompleteAt})
	}
	return all
}

// maxAnnounceWait bounds how long a server that stops tries to say so.
const maxAnnounceWait = 2 * time.Second

// announceDrain tells the other servers that this one stops, when ctx ends, and gives its accounts to agents of theirs.
func announceDrain(ctx context.Context, st *store.Store, assignments *assigner.Registry) error {
	<-ctx.Done()
	assignments.Drain()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxAnnounceWait)
	defer cancel()
	_ = st.SetServerState(ctx, sqldb.ServerDraining) // otherwise they find that it has ended
	return nil
}
