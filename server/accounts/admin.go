package accounts

import (
	"cmp"
	"context"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/registry"
)

// adminStore is the part of the store that operators' decisions need.
type adminStore interface {
	Account(ctx context.Context, account vedette.AccountName) (registry.Account, error)
	DiscardAccount(ctx context.Context, account vedette.AccountName) (bool, error)
	RetireAccount(ctx context.Context, account vedette.AccountName) (bool, error)
}

// Release removes an account that no agent serves, without waiting for the grace period, so that any
// cluster may register the name. The error is vedette.Conflict if an agent serves the account.
func (a *Accounts) Release(ctx context.Context, name vedette.AccountName) error {
	row, err := a.store.Account(ctx, name)
	if err != nil {
		return err
	}
	remove := a.store.RemoveOrphan
	if a.cfg.KeepData {
		remove = a.store.RetireOrphan
	}
	released := false
	if row.Holder == "" {
		released, err = remove(ctx, name, row.Term)
	}
	if err == nil && !released {
		return vedette.Errorf(vedette.Conflict,
			"account %s is in use: agent %s serves it: remove the account from the agent's configuration first", name,
			cmp.Or(string(row.Holder), "another"))
	}
	return err
}

// Remove removes an account and its data, whether or not an agent serves it. An agent that still has
// the account registers it again, and reports everything again.
func (a *Accounts) Remove(ctx context.Context, name vedette.AccountName) error {
	found, err := a.store.DiscardAccount(ctx, name)
	if err == nil && !found {
		return registry.ErrNoAccount
	}
	return err
}

// Replace gives the name of an account to another cluster. What the server holds of the former
// cluster is removed, or kept for its return, as when the grace period ends. The caller must prevent
// that an agent registers the name at the same time.
func (a *Accounts) Replace(ctx context.Context, account vedette.Account) error {
	if err := validate(&account); err != nil {
		return err
	}
	detach := a.store.DiscardAccount
	if a.cfg.KeepData {
		detach = a.store.RetireAccount
	}
	if _, err := detach(ctx, account.Name); err != nil {
		return err
	}
	_, err := a.Register(ctx, account)
	return err
}
