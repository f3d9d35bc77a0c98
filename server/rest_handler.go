package server

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/accounts"
	"github.com/vedette-io/vedette/server/api"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/membudget"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/upstream"
)

// streamBytes limits the memory of change streams, in a process with enough memory. Each takes 512 KiB while it is open. A stream
// that finds no memory is rejected soon, because streams last long and waiting would not help.
const streamBytes = 128 << 20

// newRESTHandler returns the handler of both REST APIs.
func (s *Server) newRESTHandler(v *services) (http.Handler, error) {
	st, log := v.store, v.callersLog
	authority, err := authorize.New(authorize.Config{Fiat: s.cfg.Fiat, Log: log, HasSimilar: st.HasSimilarAccount,
		Properties: func(ctx context.Context, account vedette.AccountName) (vedette.Properties, error) {
			row, err := st.Account(ctx, account)
			return row.Properties, err
		}})
	if err != nil {
		return nil, err
	}
	readLimiter := readlimit.New(readlimit.Config{Bytes: s.cfg.ReadBytes, OnWait: s.cfg.Metrics.ReadLimitWaited})
	mux := http.NewServeMux()
	mux.Handle("/vedette/v1/", api.New(api.Config{
		ReadLimiter:   readLimiter,
		StreamLimiter: readlimit.NewUniform(readlimit.Config{Bytes: membudget.Fit(streamBytes, s.cfg.Memory), Wait: time.Second}),
		Store:         st, Hub: v.hub, Fleet: v.fleet(), Accounts: v.accountAdmin(),
		Dispatch: v.operations, Kinds: v.kinds,
		History: func() api.History {
			keep, maxBytes, size := v.dispatcher.History()
			return api.History{Keep: keep, MaxBytes: maxBytes, Size: size}
		},
		OperationKey: s.operationKey(), Log: log, Version: s.cfg.Version,
		StaleAfter: 4 * s.cfg.AgentServer.HeartbeatInterval(), Authorizer: authority, HasUpstream: v.remote != nil,
	}))
	cfg := s.cfg.Clouddriver
	cfg.ReadLimiter, cfg.OnViewRead = readLimiter, s.cfg.Metrics.ViewRead
	cfg.Store = st
	cfg.Accounts = v.accountList
	cfg.Authorizer = authority
	cfg.Dispatch, cfg.Tasks = v.operations, v.tasks
	cfg.AgentCount, cfg.Log = v.agentServer.Agents, log
	cfg.Agents = v.fleet().records
	if v.peers != nil && v.peers.forwarding != nil {
		cfg.Forwarding = v.peers.forwarding
	}
	cfg.Servers = s.servers.Servers
	cfg.Connected = func(account vedette.AccountName) bool {
		_, live := v.fleet().Freshness(account)
		return live
	}
	clouddriverHandler := newClouddriver(cfg, v.remote)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Only our own paths go through a ServeMux, because it redirects paths with two slashes,
		// which Orca sends for cluster-scoped objects.
		if strings.HasPrefix(r.URL.Path, "/vedette/v1/") {
			mux.ServeHTTP(w, r)
			return
		}
		clouddriverHandler.ServeHTTP(w, r)
	}), nil
}

// newClouddriver returns the handler of Clouddriver's API, with an existing Clouddriver behind it unless remote is nil.
func newClouddriver(cfg clouddriver.Config, remote *upstream.Remote) http.Handler {
	if remote == nil {
		return clouddriver.New(cfg)
	}
	cfg.Remote = remote.For
	return upstream.New(remote, clouddriver.New(cfg))
}

// newRemote returns the connection to the existing Clouddriver behind this server, or nil if none is configured.
func (s *Server) newRemote(v *services) (*upstream.Remote, error) {
	if s.cfg.Upstream == nil {
		return nil, nil
	}
	cfg := *s.cfg.Upstream
	cfg.Log, cfg.HasProjects = v.callersLog, s.cfg.Clouddriver.Projects != nil
	cfg.Missing = func(ctx context.Context, account vedette.AccountName) string {
		feeds, err := v.store.Feeds(ctx, account)
		if err != nil {
			return "the database does not answer"
		}
		_, hasProblem := reporter{v.assignments}.Reports(account)
		return accounts.ProgressOf(feeds, hasProblem).Missing
	}
	remote, err := upstream.NewRemote(cfg, v.accountList, v.store)
	if err != nil {
		return nil, err
	}
	sampleUpstream(s.cfg.Metrics, remote)
	return remote, nil
}
