package clouddriver

import "sync/atomic"

// CredentialRules decide how Spinnaker shows accounts. They may change while the server runs.
type CredentialRules struct {
	// PrimaryAccountTypes are the account types that make an account primary
	// (credentials.primaryAccountTypes). Nil means "default".
	PrimaryAccountTypes []string
	// ChallengeEnvironments are the environments in which Deck asks for confirmation before
	// destructive actions (credentials.challengeDestructiveActionsEnvironments). Nil means
	// "default".
	ChallengeEnvironments []string
}

func (r CredentialRules) withDefaults() *CredentialRules {
	if r.PrimaryAccountTypes == nil {
		r.PrimaryAccountTypes = []string{"default"}
	}
	if r.ChallengeEnvironments == nil {
		r.ChallengeEnvironments = []string{"default"}
	}
	return &r
}

// Reloadable holds what can change while the server runs. The zero value has the defaults.
type Reloadable struct {
	rules atomic.Pointer[CredentialRules]
}

// SetCredentialRules replaces the rules.
func (l *Reloadable) SetCredentialRules(r CredentialRules) { l.rules.Store(r.withDefaults()) }

// CredentialRules returns the rules. The pointer is another one after each change.
func (l *Reloadable) CredentialRules() *CredentialRules {
	if rules := l.rules.Load(); rules != nil {
		return rules
	}
	l.rules.CompareAndSwap(nil, CredentialRules{}.withDefaults())
	return l.rules.Load()
}
