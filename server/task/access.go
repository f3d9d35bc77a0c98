package task

import (
	"context"
	"slices"

	"github.com/vedette-io/vedette"
)

// AccessFunc decides whether a caller has access to an account. The error is vedette.Denied if
// not, and any other error if it is unknown.
type AccessFunc func(ctx context.Context, account vedette.AccountName) error

// CheckAccess checks each account of the task. If the accounts are unknown, it checks the
// empty name, which requires access to every account.
func (t Task) CheckAccess(ctx context.Context, check AccessFunc) error {
	accounts := t.Accounts
	if accounts == nil {
		accounts = []vedette.AccountName{""}
	}
	for _, account := range accounts {
		if err := check(ctx, account); err != nil {
			return err
		}
	}
	return nil
}

// checkRerun checks whether a task may be run again. A nil check allows it.
func (t Task) checkRerun(ctx context.Context, check AccessFunc) error {
	if check == nil {
		return nil
	}
	return t.CheckAccess(ctx, check)
}

// allAccounts returns the accounts of both lists, sorted. It is nil if either list is unknown.
func allAccounts(a, b []vedette.AccountName) []vedette.AccountName {
	if a == nil || b == nil {
		return nil
	}
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}
