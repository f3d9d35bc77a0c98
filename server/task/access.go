package task

import (
	"context"
	"slices"

	"github.com/vedette-io/vedette"
)

// MayFunc decides whether a caller may do something with an account. The error is
// a vedette.Denied where not, and any other where it can't be told.
type MayFunc func(ctx context.Context, account vedette.AccountName) error

// May asks for each account of the task. Of a task whose accounts are not known it
// asks for the empty name, which only those may use who may use every account.
func (t Task) May(ctx context.Context, may MayFunc) error {
	accounts := t.Accounts
	if accounts == nil {
		accounts = []vedette.AccountName{""}
	}
	for _, account := range accounts {
		if err := may(ctx, account); err != nil {
			return err
		}
	}
	return nil
}

// mayChange asks whether a task may be run again. Nil lets everyone.
func (t Task) mayChange(ctx context.Context, may MayFunc) error {
	if may == nil {
		return nil
	}
	return t.May(ctx, may)
}

// allAccounts returns the accounts of both, sorted. It is nil where one of them is not
// known.
func allAccounts(a, b []vedette.AccountName) []vedette.AccountName {
	if a == nil || b == nil {
		return nil
	}
	both := slices.Concat(a, b)
	slices.Sort(both)
	return slices.Compact(both)
}
