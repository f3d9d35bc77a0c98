// Package authorize decides who may read and change which account and which
// application: by what Fiat says of a user or, where there is no Fiat, by the
// accounts that Gate found the user entitled to. What can't be found out is
// denied.
package authorize

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/vedette-io/vedette"
)

// Config is whom to ask.
type Config struct {
	Fiat *FiatConfig // nil: there is none
	// Properties returns what is known of an account; its error is
	// vedette.NotFound where there is none of that name. It is asked only without
	// Fiat.
	Properties func(ctx context.Context, account vedette.AccountName) (vedette.Properties, error)
	Log        *slog.Logger // nil: nothing is logged
}

// Authorizer is safe for concurrent use.
type Authorizer struct {
	cfg         Config
	permissions *permissionCache // nil without Fiat
}

// New returns an authority. The error is vedette.Invalid where the
// configuration makes no sense.
func New(cfg Config) (*Authorizer, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	a := &Authorizer{cfg: cfg}
	if cfg.Fiat == nil {
		return a, nil
	}
	if err := cfg.Fiat.Validate(); err != nil {
		return nil, err
	}
	a.permissions = newPermissionCache(cfg.Fiat.withDefaults(), cfg.Log)
	return a, nil
}

// CheckAccount says whether a caller may use an account. The error is vedette.Denied
// with Clouddriver's words where not; vedette.NotFound or vedette.Unavailable
// where the account is not there or can't be looked up just now.
func (a *Authorizer) CheckAccount(ctx context.Context, c Caller, account vedette.AccountName, access Access) error {
	allowed, err := a.isAccountAllowed(ctx, c, account, access)
	return a.toError(ctx, allowed, err, c, slog.String("account", string(account)), access)
}

// CheckApplication says whether a caller may use an application. Without Fiat
// everyone may. A name that is empty is nobody's: it is denied.
func (a *Authorizer) CheckApplication(ctx context.Context, c Caller, application string, access Access) error {
	if a.permissions == nil {
		return nil
	}
	p, err := a.permissions.get(ctx, c)
	allowed := err == nil && p.isApplicationAllowed(application, access)
	return a.toError(ctx, allowed, err, c, slog.String("application", application), access)
}

// Readable returns which accounts a caller may read, for those who choose among
// many. It is nil where everyone may read all of them.
func (a *Authorizer) Readable(ctx context.Context, c Caller) (func(vedette.AccountName) bool, error) {
	if a.permissions == nil {
		return nil, nil
	}
	p, err := a.permissions.get(ctx, c)
	if err != nil {
		return nil, a.toError(ctx, false, err, c, slog.String("account", "*"), Read)
	}
	return func(account vedette.AccountName) bool { return p.isAccountAllowed(string(account), Read) }, nil
}

// DenialMessage is how Clouddriver words among the errors of an operation that a
// caller may not change an account.
func (a *Authorizer) DenialMessage(c Caller, account vedette.AccountName) string {
	if a.permissions == nil {
		return fmt.Sprintf("%s is not authorized (account: %s)", c.User, account)
	}
	return "Access denied to account " + string(account)
}

func (a *Authorizer) isAccountAllowed(ctx context.Context, c Caller, account vedette.AccountName, access Access) (bool, error) {
	if a.permissions != nil {
		p, err := a.permissions.get(ctx, c)
		return err == nil && p.isAccountAllowed(string(account), access), err
	}
	if access == Read || c.hasAccount(string(account)) {
		return true, nil
	}
	// Clouddriver's requiredGroupMembership comes as permissions, too.
	properties, err := a.cfg.Properties(ctx, account)
	return err == nil && properties.Permissions == nil, err
}

// toError makes an error of what was found out. Only two failures are told as
// such, which let nobody in either: that the account is not there, and that the
// database is away.
func (a *Authorizer) toError(ctx context.Context, allowed bool, err error, c Caller, subject slog.Attr, access Access) error {
	kind := vedette.KindOf(err)
	switch {
	case allowed && err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("look up what %s may do: %w", c.User, context.Cause(ctx))
	case a.permissions == nil && (kind == vedette.NotFound || kind == vedette.Unavailable):
		return err
	case err == nil:
		a.cfg.Log.Info("access denied", "caller", c, subject, "access", access)
	default:
		a.cfg.Log.Warn("access denied, for it could not be found out whether it is allowed", "caller", c, subject, "access", access, "error", err)
	}
	return &vedette.Error{Kind: vedette.Denied, Message: "Access is denied", Err: err}
}
