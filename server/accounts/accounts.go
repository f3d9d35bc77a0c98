// Package accounts decides what an account is: who may register it, whether
// what it says of itself is sound, and when it is forgotten.
package accounts

import (
	"context"
	"log/slog"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// accountStore is where accounts are kept.
type accountStore interface {
	Register(ctx context.Context, a vedette.Account) (store.AccountRow, error)
	Accounts(ctx context.Context) ([]store.AccountRow, error)
	RemoveOrphan(ctx context.Context, account vedette.AccountName, term vedette.Term) (bool, error)
	RetireOrphan(ctx context.Context, account vedette.AccountName, term vedette.Term) (bool, error)
	Sweep(ctx context.Context) error
}

// Config is the life of accounts.
type Config struct {
	// Grace is how long an account without any agent is kept, with its data. Zero
	// means 10 minutes, as the predecessor has it: shorter, and a rolling restart
	// would empty what users see.
	Grace time.Duration
	// KeepData keeps the data of an account that is forgotten. It is there again
	// when an agent of the same cluster registers the account anew.
	KeepData bool
}

// Accounts is safe for concurrent use.
type Accounts struct {
	cfg      Config
	store    accountStore
	log      *slog.Logger
	absences absenceTracker
}

// New returns the rules over a book.
func New(cfg Config, b accountStore, log *slog.Logger) *Accounts {
	if cfg.Grace == 0 {
		cfg.Grace = 10 * time.Minute
	}
	return &Accounts{cfg: cfg, store: b, log: log, absences: absenceTracker{byAccount: map[vedette.AccountName]absence{}}}
}

// Register takes an account in, or refuses it: vedette.Invalid for properties
// that can't be trusted, vedette.Conflict where the name is another cluster's.
// An account that is there already stays as it is; the row is what is stored.
func (a *Accounts) Register(ctx context.Context, account vedette.Account) (store.AccountRow, error) {
	if err := validate(&account); err != nil {
		return store.AccountRow{}, err
	}
	row, err := a.store.Register(ctx, account)
	if vedette.KindOf(err) != vedette.Conflict {
		a.absences.reset(account.Name) // also where the database is away: an agent is there
	}
	return row, err
}

func validate(a *vedette.Account) error {
	switch {
	case a.Name == "":
		return vedette.Errorf(vedette.Invalid, "an account without a name was registered for %s; give it a name in the agent's configuration", a.Cluster)
	case len(a.Name) > 255:
		return vedette.Errorf(vedette.Invalid, "the account name %.40q… has %d characters; 255 are the most", a.Name, len(a.Name))
	case !a.Cluster.Identifiable():
		return vedette.Errorf(vedette.Invalid, "account %s can't be told from another cluster of that name: its agent may not read the uid of namespace kube-system, "+
			"and knows no certificate of the API server. Allow the agent to get that namespace, or connect it to the API server by TLS", a.Name)
	case a.Properties.Permissions == nil:
		return nil
	}
	return a.Properties.Permissions.Normalize()
}

// Run forgets accounts that no agent has spoken for during the grace period,
// until ctx ends. Only time in which this server runs and could have served an
// agent counts, so that an outage of any length takes nothing away.
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
			rows, err := a.store.Accounts(ctx)
			elapsed := clock.elapsed(err == nil)
			if err == nil {
				err = a.removeExpired(ctx, a.absences.observe(rows, elapsed, a.cfg.Grace))
			}
			if err != nil && ctx.Err() == nil {
				a.log.Warn("accounts without agents could not be removed; tried again", "error", err)
			}
		}
	}
}

// removeExpired removes accounts, and what earlier removals have left.
func (a *Accounts) removeExpired(ctx context.Context, rows []store.AccountRow) error {
	remove, message := a.store.RemoveOrphan, "account removed with its data: no agent spoke for it during the grace period"
	if a.cfg.KeepData {
		remove, message = a.store.RetireOrphan, "account removed and its data kept: no agent spoke for it during the grace period"
	}
	for _, row := range rows {
		removed, err := remove(ctx, row.Name, row.Term)
		if err != nil {
			return err
		}
		if removed {
			a.log.Info(message, "account", row.Name, "cluster", row.Cluster.String(), "grace", a.cfg.Grace)
		}
	}
	return a.store.Sweep(ctx)
}
