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

// book is where accounts are kept.
type book interface {
	Register(ctx context.Context, a vedette.Account) (store.AccountRow, error)
	RemoveOrphans(ctx context.Context, before time.Time) ([]vedette.AccountName, error)
}

// Config is the life of accounts.
type Config struct {
	// Grace is how long an account without any agent is kept, with its data. Zero
	// means 10 minutes, as the predecessor has it: shorter, and a rolling restart
	// would empty what users see.
	Grace time.Duration
	// Keep turns the forgetting off.
	Keep bool
}

// Accounts is safe for concurrent use.
type Accounts struct {
	cfg  Config
	book book
	log  *slog.Logger
}

// New returns the rules over a book.
func New(cfg Config, b book, log *slog.Logger) *Accounts {
	if cfg.Grace == 0 {
		cfg.Grace = 10 * time.Minute
	}
	return &Accounts{cfg: cfg, book: b, log: log}
}

// Register takes an account in, or refuses it: vedette.Invalid for properties
// that can't be trusted, vedette.Conflict where the name is another cluster's.
func (a *Accounts) Register(ctx context.Context, account vedette.Account) (store.AccountRow, error) {
	if err := validate(&account); err != nil {
		return store.AccountRow{}, err
	}
	return a.book.Register(ctx, account)
}

func validate(a *vedette.Account) error {
	switch {
	case a.Name == "":
		return vedette.Errorf(vedette.Invalid, "an account without a name was registered for %s; give it a name in the agent's configuration", a.Cluster)
	case len(a.Name) > 255:
		return vedette.Errorf(vedette.Invalid, "the account name %.40q… has %d characters; 255 are the most", a.Name, len(a.Name))
	case a.Cluster.UID == "" && a.Cluster.Host == "":
		return vedette.Errorf(vedette.Invalid, "account %s names neither its cluster's uid nor its API server, so it can't be told from another cluster of that name", a.Name)
	case a.Properties.Permissions == nil:
		return nil
	}
	return a.Properties.Permissions.Normalize()
}

// Run forgets accounts that no agent has spoken for during the grace period,
// until ctx ends.
func (a *Accounts) Run(ctx context.Context) error {
	if a.cfg.Keep {
		<-ctx.Done()
		return nil
	}
	tick := time.NewTicker(min(a.cfg.Grace/4+time.Second, 10*time.Second))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			a.expire(ctx)
		}
	}
}

func (a *Accounts) expire(ctx context.Context) {
	removed, err := a.book.RemoveOrphans(ctx, time.Now().Add(-a.cfg.Grace))
	for _, name := range removed {
		a.log.Info("account removed: no agent spoke for it during the grace period", "account", name, "grace", a.cfg.Grace)
	}
	if err != nil && ctx.Err() == nil {
		a.log.Warn("accounts without agents could not be removed; tried again", "error", err)
	}
}
