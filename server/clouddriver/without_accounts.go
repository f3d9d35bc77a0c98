package clouddriver

import (
	"context"

	"github.com/vedette-io/vedette"
)

type withoutAccountsKey struct{}

// WithoutAccounts returns a context for a request whose answer leaves out some accounts, because a Clouddriver behind this server
// answers for them. That they are incomplete makes nothing uncertain.
func WithoutAccounts(ctx context.Context, isLeftOut func(vedette.AccountName) bool) context.Context {
	return context.WithValue(ctx, withoutAccountsKey{}, isLeftOut)
}

// isLeftOut reports whether the answer to a request leaves out an account.
func isLeftOut(ctx context.Context, account vedette.AccountName) bool {
	leftOut, ok := ctx.Value(withoutAccountsKey{}).(func(vedette.AccountName) bool)
	return ok && leftOut(account)
}
