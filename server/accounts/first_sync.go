package accounts

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/infrastructure"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/registry"
	"github.com/vedette-io/vedette/server/store/versions"
)

// syncStore is the part of the store that FirstSyncs uses.
type syncStore interface {
	ChangedAccounts(since uint64) versions.AccountChanges
	AccountSyncs(ctx context.Context, names ...vedette.AccountName) ([]registry.Sync, error)
	Feeds(ctx context.Context, accounts ...vedette.AccountName) ([]read.FeedStatus, error)
	MarkSettled(ctx context.Context, account vedette.AccountName, term vedette.Term, complete bool) error
}

// Reporter tells what is known about the agent that reports an account.
type Reporter interface {
	// Reports returns whether an agent reports the account now, and whether it says that it cannot read a part of it.
	Reports(account vedette.AccountName) (connected, hasProblem bool)
}

// FirstSyncs records for each account when its first synchronization has ended. The Clouddriver behind this server
// answers for an account until then, because half of an account looks like an account without the other half.
type FirstSyncs struct {
	store    syncStore
	reporter Reporter
	log      *slog.Logger

	mark    uint64                           // of the store's list of changed accounts
	pending map[vedette.AccountName]struct{} // to look at
	waiting map[vedette.AccountName]struct{} // to look at again later: their agents are away or report problems
	retryAt time.Time
	// parts are accounts that would be complete without all kinds by which Spinnaker decides.
	parts map[vedette.AccountName]part
}

// NewFirstSyncs returns FirstSyncs. Nothing is recorded before Run.
func NewFirstSyncs(s syncStore, reporter Reporter, log *slog.Logger) *FirstSyncs {
	return &FirstSyncs{
		store: s, reporter: reporter, log: log, pending: map[vedette.AccountName]struct{}{}, waiting: map[vedette.AccountName]struct{}{},
		parts: map[vedette.AccountName]part{},
	}
}

const (
	// firstSyncInterval is how often accounts that have changed are looked at.
	firstSyncInterval = 250 * time.Millisecond
	// firstSyncRetry is how often accounts are looked at whose agents are away or report problems.
	firstSyncRetry = 2 * time.Second
	// maxFirstSyncs is of how many accounts the feeds are read at once. While thousands of accounts synchronize, each
	// of their feeds changes several times.
	maxFirstSyncs = 100
	// maxNamedSyncs is how many accounts a query names. If more have changed, it reads all.
	maxNamedSyncs = 1000
)

// Run looks at accounts that have changed until ctx ends.
func (f *FirstSyncs) Run(ctx context.Context) error {
	tick := time.NewTicker(firstSyncInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := f.step(ctx); err != nil && ctx.Err() == nil {
				f.log.Warn("retrying to record which accounts are synchronized", "error", err)
				f.mark = 0 // all accounts are looked at again
			}
		}
	}
}

// step looks at accounts that have changed, and now and then at those that wait.
func (f *FirstSyncs) step(ctx context.Context) error {
	changed := f.store.ChangedAccounts(f.mark) // before the read, so that no change is missed
	for _, name := range changed.Names {
		f.pending[name] = struct{}{}
	}
	if time.Now().After(f.retryAt) {
		maps.Copy(f.pending, f.waiting)
		clear(f.waiting)
		f.retryAt = time.Now().Add(firstSyncRetry)
	}
	if f.mark = changed.Mark; len(f.pending) == 0 && !changed.All {
		return nil
	}
	var names []vedette.AccountName // all
	if !changed.All && len(f.pending) <= maxNamedSyncs {
		names = slices.Sorted(maps.Keys(f.pending))
	}
	all, err := f.store.AccountSyncs(ctx, names...)
	if err != nil {
		return err
	}
	var open []openSync
	next := map[vedette.AccountName]struct{}{}
	for _, a := range all { // accounts that are gone are not looked at again
		if _, isPending := f.pending[a.Account]; !isPending && !changed.All || !a.Complete.IsZero() {
			continue
		}
		switch connected, hasProblem := f.reporter.Reports(a.Account); {
		case !connected:
			f.waiting[a.Account] = struct{}{}
		case len(open) < maxFirstSyncs:
			open = append(open, openSync{a, hasProblem})
		default:
			next[a.Account] = struct{}{}
		}
	}
	f.pending = next
	return f.record(ctx, open)
}

// openSync is an account whose first synchronization may have ended.
type openSync struct {
	registry.Sync
	hasProblem bool // before its feeds are read
}

// record reads the feeds of some accounts, and records which of them are synchronized.
func (f *FirstSyncs) record(ctx context.Context, open []openSync) error {
	if len(open) == 0 {
		return nil
	}
	names := make([]vedette.AccountName, len(open))
	for i, a := range open {
		names[i] = a.Account
	}
	feeds, err := f.store.Feeds(ctx, names...)
	if err != nil {
		return err
	}
	byAccount := map[vedette.AccountName][]read.FeedStatus{}
	for i := range feeds {
		byAccount[feeds[i].Account] = append(byAccount[feeds[i].Account], feeds[i])
	}
	for _, a := range open {
		connected, hasProblem := f.reporter.Reports(a.Account)
		hasProblem = hasProblem || a.hasProblem
		p := ProgressOf(byAccount[a.Account], hasProblem)
		if !connected || hasProblem && !p.Complete { // problems end without a change of the feeds
			f.waiting[a.Account] = struct{}{}
		}
		if !p.Complete {
			delete(f.parts, a.Account)
		}
		if !connected || p.Complete && !f.isConfirmed(a.Sync, p) {
			continue
		}
		if !p.Settled || !p.Complete && !a.Settled.IsZero() {
			continue
		}
		if err := f.store.MarkSettled(ctx, a.Account, a.Term, p.Complete); err != nil {
			return err
		}
		f.log.Info("the first synchronization of an account has ended", "account", a.Account, "complete", p.Complete, "missing", p.Missing)
	}
	return nil
}

// part says since when, and in which term, an account looks complete without all kinds by which Spinnaker decides.
type part struct {
	term  vedette.Term
	since time.Time
}

// isConfirmed reports whether an account that looks complete is. If kinds by which Spinnaker decides are not declared, it must have
// looked so for a while, in one term: between two messages of an agent that finds these kinds late, the account looks as if it had
// been configured without them.
func (f *FirstSyncs) isConfirmed(a registry.Sync, p Progress) bool {
	if !p.isPart {
		delete(f.parts, a.Account)
		return true
	}
	known, ok := f.parts[a.Account]
	if !ok || known.term != a.Term {
		known = part{a.Term, time.Now()}
		f.parts[a.Account] = known
	}
	if time.Since(known.since) < firstSyncRetry {
		f.waiting[a.Account] = struct{}{}
		return false
	}
	delete(f.parts, a.Account)
	return true
}

// Progress is how far the first synchronization of an account has come.
type Progress struct {
	Settled  bool   // no feed waits for its first snapshot
	Complete bool   // and all feeds by which Spinnaker decides are live
	Missing  string // what prevents that the account is complete; empty if it is
	isPart   bool   // kinds by which Spinnaker decides are not declared
}

// decisiveKinds are the kinds by which Spinnaker decides: what applications, clusters, server groups, load balancers
// and instances consist of.
var decisiveKinds = slices.Concat(infrastructure.LogicalKinds, infrastructure.InstanceKinds)

// ProgressOf returns the progress of an account with these feeds. A kind that the agent does not declare is left out
// by its configuration, unless the agent has a problem: then it may not have found the kind.
func ProgressOf(feeds []read.FeedStatus, hasProblem bool) Progress {
	if len(feeds) == 0 {
		return Progress{Missing: "its agent has not reported yet which kinds it caches"}
	}
	declared := map[vedette.Kind]bool{}
	waiting, first := 0, ""
	var missing string
	for i := range feeds {
		f := &feeds[i]
		declared[f.Feed.Kind] = true
		isDecisive := slices.Contains(decisiveKinds, f.Feed.Kind)
		switch {
		case f.State == vedette.FeedPending || f.State == vedette.FeedSyncing || isDecisive && f.State == vedette.FeedFailing:
			if waiting++; first == "" {
				first = f.Feed.String()
			}
		case isDecisive && f.State != vedette.FeedLive && missing == "":
			missing = fmt.Sprintf("its agent may not read %s: allow it, or configure the account to omit that kind", f.Feed)
		}
	}
	if waiting > 0 {
		return Progress{Missing: fmt.Sprintf("%d of %d kinds have not been read yet, for example %s", waiting, len(feeds), first)}
	}
	isPart := false
	for _, kind := range decisiveKinds {
		isPart = isPart || !declared[kind]
		if missing == "" && hasProblem && !declared[kind] {
			missing = fmt.Sprintf("its agent reports a problem and has not found %s", kind)
		}
	}
	return Progress{Settled: true, Complete: missing == "", Missing: missing, isPart: isPart}
}
