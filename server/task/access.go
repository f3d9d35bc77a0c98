package task

import (
	"context"
	"slices"

	"github.com/vedette-io/vedette"
)

// AccessFunc decides whether a caller may do something with an account. The error is
// a vedette.Denied where not, and any other where it can't be told.
type AccessFunc func(ctx context.Context, account vedette.AccountName) error

// CheckAccess asks for each account of the task. Of a task whose accounts are not known it
// asks for the empty name, which only those may use who may use every account.
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

// checkRerun asks whether a task may be run again. Nil lets everyone.
func (t Task) checkRerun(ctx context.Context, check AccessFunc) error {
	if check == nil {
		return nil
	}
	return t.CheckAccess(ctx, check)
}

// allAccounts returns the accounts of both, sorted. It is nil where one of them is not
// known.
func allAccounts(a, b []vedette.AccountName) []vedette.AccountName {
	if a == nil || b == nil {
		return nil
	}
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}
