package web

import (
	"context"
	"net/http"

	"github.com/vedette-io/vedette"
)

// IsFromStage reports whether Orca sends a request for a stage, which acts on the answer.
func IsFromStage(r *http.Request) bool { return r.Header.Get("X-SPINNAKER-EXECUTION-ID") != "" }

type withoutAccountsKey struct{}

// WithoutAccounts returns a context for a request whose answer leaves out some accounts, because a Clouddriver behind this server
// answers for them. That they are incomplete makes nothing uncertain.
func WithoutAccounts(ctx context.Context, isLeftOut func(vedette.AccountName) bool) context.Context {
	return context.WithValue(ctx, withoutAccountsKey{}, isLeftOut)
}

// IsLeftOut reports whether the answer to a request leaves out an account.
func IsLeftOut(ctx context.Context, account vedette.AccountName) bool {
	leftOut, ok := ctx.Value(withoutAccountsKey{}).(func(vedette.AccountName) bool)
	return ok && leftOut(account)
}
