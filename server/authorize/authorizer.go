// Package authorize decides which accounts and applications a caller may read and change. It asks
// Fiat. If Fiat is not configured, it uses the accounts that Gate has found the user entitled to.
// If a permission cannot be determined, access is denied, and the error says whether asking again may help.
package authorize

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/vedette-io/vedette"
)

// Config configures an Authorizer.
type Config struct {
	Fiat *FiatConfig // nil if Fiat is not used
	// Properties returns the properties of an account. Its error is vedette.NotFound if the account
	// does not exist. It is called only if Fiat is not used.
	Properties func(ctx context.Context, account vedette.AccountName) (vedette.Properties, error)
	// HasSimilar reports whether another account differs from one by case only, so that the names that
	// Gate sends may stand for either: then they entitle to neither. Nil means that none does.
	HasSimilar func(ctx context.Context, account vedette.AccountName) (bool, error)
	Log        *slog.Logger // nil disables logging
}

// Authorizer decides what callers may do. It is safe for concurrent use.
type Authorizer struct {
	cfg         Config
	permissions *permissionCache // nil if Fiat is not used
}

// New returns an Authorizer. The error is vedette.Invalid if the configuration is invalid.
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

// CheckAccount checks whether a caller may use an account. The error is vedette.Denied with
// Clouddriver's message if it may not, vedette.NotFound if the account does not exist, and
// vedette.Unavailable if it cannot be looked up now.
func (a *Authorizer) CheckAccount(ctx context.Context, c Caller, account vedette.AccountName, access Access) error {
	allowed, err := a.isAccountAllowed(ctx, c, account, access)
	return a.toError(ctx, allowed, err, c, slog.String("account", string(account)), access)
}

// CheckApplication checks whether a caller may use an application. If Fiat is not used, every
// caller may. The empty name is always denied, because it belongs to no application.
func (a *Authorizer) CheckApplication(ctx context.Context, c Caller, application string, access Access) error {
	if a.permissions == nil {
		return nil
	}
	p, err := a.permissions.get(ctx, c)
	allowed := err == nil && p.isApplicationAllowed(application, access)
	return a.toError(ctx, allowed, err, c, slog.String("application", application), access)
}

// Readable returns a function that reports whether the caller may read an account, for callers that
// filter many accounts. The function is nil if the caller may read all of them.
func (a *Authorizer) Readable(ctx context.Context, c Caller) (func(vedette.AccountName) bool, error) {
	if a.permissions == nil {
		return nil, nil
	}
	p, err := a.permissions.get(ctx, c)
	if err != nil {
		return nil, a.toError(ctx, false, err, c, slog.String("account", allAccounts), Read)
	}
	if p.admin {
		return nil, nil
	}
	return func(account vedette.AccountName) bool {
		allowed, err := a.isAllowedBy(ctx, p, account, Read)
		return allowed && err == nil
	}, nil
}

func (a *Authorizer) isAllowedBy(ctx context.Context, p *permissions, account vedette.AccountName, access Access) (bool, error) {
	if p.byGate != nil {
		return a.isEntitled(ctx, *p.byGate, account)
	}
	return p.isAccountAllowed(string(account), access), nil
}

// isEntitled reports whether Gate has found the caller entitled to an account.
func (a *Authorizer) isEntitled(ctx context.Context, c Caller, account vedette.AccountName) (bool, error) {
	if !c.hasAccount(string(account)) || a.cfg.HasSimilar == nil {
		return c.hasAccount(string(account)), nil
	}
	isAmbiguous, err := a.cfg.HasSimilar(ctx, account)
	return err == nil && !isAmbiguous, err
}

// ReadableApplications returns a function that reports whether the caller may read an application,
// for callers that filter many applications. The function is nil if the caller may read all of
// them.
func (a *Authorizer) ReadableApplications(ctx context.Context, c Caller) (func(application string) bool, error) {
	if a.permissions == nil {
		return nil, nil
	}
	p, err := a.permissions.get(ctx, c)
	if err != nil {
		return nil, a.toError(ctx, false, err, c, slog.String("application", "*"), Read)
	}
	return func(application string) bool { return p.isApplicationAllowed(application, Read) }, nil
}

// DenialMessage returns Clouddriver's error message for an operation on an account that the caller
// may not change.
func (a *Authorizer) DenialMessage(c Caller, account vedette.AccountName) string {
	if a.permissions == nil {
		return fmt.Sprintf("%s is not authorized (account: %s)", c.User, account)
	}
	return "Access denied to account " + string(account)
}

func (a *Authorizer) isAccountAllowed(ctx context.Context, c Caller, account vedette.AccountName, access Access) (bool, error) {
	if a.permissions != nil {
		p, err := a.permissions.get(ctx, c)
		if err != nil {
			return false, err
		}
		return a.isAllowedBy(ctx, p, account, access)
	}
	if access == Read {
		return true, nil
	}
	if entitled, err := a.isEntitled(ctx, c, account); entitled || err != nil {
		return entitled, err
	}
	// Includes Clouddriver's requiredGroupMembership, which agents send as permissions.
	properties, err := a.cfg.Properties(ctx, account)
	return err == nil && properties.Permissions == nil, err
}

// toError returns the error for a decision, and logs a denial. Every err denies access. Only two
// are returned to the caller, because they do not reveal permissions: the account does not exist,
// or the permissions cannot be looked up now, because the database or Fiat does not answer.
func (a *Authorizer) toError(ctx context.Context, allowed bool, err error, c Caller, subject slog.Attr, access Access) error {
	kind := vedette.KindOf(err)
	switch {
	case allowed && err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("look up the permissions of %s: %w", c.User, context.Cause(ctx))
	case a.permissions == nil && (kind == vedette.NotFound || kind == vedette.Unavailable):
		return err
	case err == nil:
		a.cfg.Log.Info("access denied", slog.Any("caller", c), subject, slog.Any("access", access))
	default:
		a.cfg.Log.Warn("access denied: permissions could not be determined",
			slog.Any("caller", c), subject, slog.Any("access", access), slog.Any("error", causeOf(err)))
	}
	if kind == vedette.Unavailable {
		return err
	}
	return &vedette.Error{Kind: vedette.Denied, Message: denialMessage(subject, access), Err: err}
}

// causeOf returns why permissions are unknown: for operators, and not for callers.
func causeOf(err error) error {
	if e, ok := errors.AsType[*vedette.Error](err); ok && e.Kind == vedette.Unavailable && e.Err != nil {
		return e.Err
	}
	return err
}

// denialMessage returns Clouddriver's message, which names the account or the application, unless
// the request is not about one.
func denialMessage(subject slog.Attr, access Access) string {
	name := subject.Value.String()
	if name == "" || name == allAccounts {
		return "Access is denied"
	}
	return fmt.Sprintf("Access denied to %s %.300s - required authorization: %s", subject.Key, name, access)
}

// allAccounts stands for the accounts of a request about all of them, in the log.
const allAccounts = "*"
