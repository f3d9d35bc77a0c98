// Package accounts registers accounts: it validates what agents report about them, and removes
// accounts that no agent has served for the grace period.
package accounts

import (
	"context"
	"log/slog"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/server/store/registry"
)

// lifetimeStore is the part of the store that the lifetime of accounts needs.
type lifetimeStore interface {
	Register(ctx context.Context, a vedette.Account) (registry.Account, error)
	OrphanedAccounts(ctx context.Context) ([]registry.Account, error)
	RemoveOrphan(ctx context.Context, account vedette.AccountName, term vedette.Term) (bool, error)
	RetireOrphan(ctx context.Context, account vedette.AccountName, term vedette.Term) (bool, error)
	Sweep(ctx context.Context) error
}

// accountStore is the part of the store that Accounts uses.
type accountStore interface {
	lifetimeStore
	adminStore
}

// Config configures the lifetime of accounts. The default is that of the Scale Agent. With a much shorter one, a rolling restart
// of the agents would remove accounts that users look at.
type Config struct {
	// Time until an account is removed after its last agent has disconnected. Only time in which this server
	// runs and its database answers counts, so that an outage does not remove accounts.
	Grace time.Duration `config:"gracePeriod" default:"10m"`
	// KeepData keeps the data of removed accounts. The data becomes visible again when an agent of
	// the same cluster registers the account again.
	KeepData bool
}

// Accounts validates, registers and removes accounts. It is safe for concurrent use.
type Accounts struct {
	cfg      Config
	store    accountStore
	log      *slog.Logger
	absences absenceTracker
}

// New returns Accounts that uses b as its store.
func New(cfg Config, b accountStore, log *slog.Logger) *Accounts {
	cfg = configfile.WithDefaults(cfg)
	return &Accounts{cfg: cfg, store: b, log: log, absences: absenceTracker{byAccount: map[vedette.AccountName]absence{}}}
}

// Register registers an account and returns the stored row. An account that exists already is not
// changed. The error is vedette.Invalid if the properties are not valid, and vedette.Conflict if
// the name belongs to another cluster.
func (a *Accounts) Register(ctx context.Context, account vedette.Account) (registry.Account, error) {
	if err := validate(&account); err != nil {
		return registry.Account{}, err
	}
	row, err := a.store.Register(ctx, account)
	if vedette.KindOf(err) != vedette.Conflict {
		a.absences.reset(account.Name) // even if the database is unavailable, because an agent is there
	}
	return row, err
}

func validate(a *vedette.Account) error {
	switch {
	case a.Name == "":
		return vedette.Errorf(vedette.Invalid,
			"the account that was registered for cluster %s has no name: set its name in the agent's configuration", a.Cluster)
	case len(a.Name) > 255:
		return vedette.Errorf(vedette.Invalid,
			"account name %.40q… has %d bytes, the maximum is 255: choose a shorter name in the agent's configuration", a.Name, len(a.Name))
	case !a.Cluster.Identifiable():
		return vedette.Errorf(vedette.Invalid,
			"the cluster of account %s cannot be identified, because its agent may not read the uid of namespace kube-system "+
				"and has no certificate of the API server: allow the agent to get that namespace, or connect it to the API server over TLS", a.Name)
	case a.Properties.Permissions == nil:
		return nil
	}
	return a.Properties.Permissions.Normalize()
}

// Run removes accounts that no agent has served for the grace period. It returns when ctx ends.
// Only time during which this server runs and can reach its database counts, so that no outage
// removes accounts.
func (a *Accounts) Run(ctx context.Context) error {
	interval := min(a.cfg.Grace/4+time.Second, 10*time.Second)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	clock := pollClock{interval: interval}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			rows, err := a.store.OrphanedAccounts(ctx)
			elapsed := clock.elapsed(err == nil)
			if err == nil {
				err = a.removeExpired(ctx, a.absences.observe(rows, elapsed, a.cfg.Grace))
			}
			if err != nil && ctx.Err() == nil {
				a.log.Warn("retrying removal of accounts without agents", "error", err)
			}
		}
	}
}

// removeExpired removes accounts, and then the data that earlier removals left.
func (a *Accounts) removeExpired(ctx context.Context, rows []registry.Account) error {
	remove := a.store.RemoveOrphan
	if a.cfg.KeepData {
		remove = a.store.RetireOrphan
	}
	for _, row := range rows {
		removed, err := remove(ctx, row.Name, row.Term)
		if err != nil {
			return err
		}
		if removed {
			a.log.Info("account removed: no agent served it during the grace period",
				"account", row.Name, "cluster", row.Cluster.String(), "grace", a.cfg.Grace, "dataKept", a.cfg.KeepData)
		}
	}
	return a.store.Sweep(ctx)
}
