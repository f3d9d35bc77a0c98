package clouddriver

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/latest"
	"github.com/vedette-io/vedette/server/accountlist"
	"github.com/vedette-io/vedette/server/rest"
)

// credentialSet is the encoded accounts, because Gate, Fiat and Deck ask for all of them every few seconds. It is immutable. The
// next one encodes only the accounts that have changed, and reads their Namespaces in one statement however many they are.
//
// An account that caches Namespaces shows those that are stored, one that is restricted to namespaces its configuration, and
// any other one what its agent found when it registered. To read and encode 5,000 accounts with 50,000 Namespaces takes some
// hundred milliseconds (BenchmarkCredentials). The map of kinds has Clouddriver's kinds and those in customResources, as
// Clouddriver's has.
//
// The store knows the changes of its own process only, which suffices because one server at a time writes to a database. Not
// chosen: a time after which the list is read again (a new namespace would appear late, and the database would be read for
// nothing); subscribing to changes (a subscriber can fall behind, and registrations are not published); only the rows without
// keeping anything (50,000 per request).
type credentialSet struct {
	accounts    *accountlist.List
	rules       *CredentialRules // of the views
	mark        uint64           // of the store's list of changed accounts, when the Namespaces were read
	credentials latest.Map[vedette.AccountName, credential]
	// plain and expanded return the list with all accounts, which is made when it is asked for.
	plain, expanded func() credentialList
}

// credentialList is the response with all accounts.
type credentialList struct {
	body []byte
	tag  uint64
}

// credential is the JSON of one account, and what it was made of.
type credential struct {
	row             *accountlist.Row
	namespaces      []string
	plain, expanded []byte
}

func (c *credential) getPlain() []byte    { return c.plain }
func (c *credential) getExpanded() []byte { return c.expanded }

// listAll returns the JSON of all accounts.
func (a *api) listAll(ctx context.Context, expanded bool) (credentialList, error) {
	if err := a.Store.CheckLease(ctx); err != nil {
		return credentialList{}, err
	}
	set, err := a.currentCredentials(ctx)
	switch {
	case err != nil:
		return credentialList{}, err
	case expanded:
		return set.expanded(), nil
	}
	return set.plain(), nil
}

// currentCredentials returns the accounts as they are when it is called, or later.
func (a *api) currentCredentials(ctx context.Context) (*credentialSet, error) {
	since := uint64(0)
	if last := a.credentials.Last(); last != nil {
		since = last.mark
	}
	mark := a.Store.ChangedAccounts(since).Mark
	accounts, err := a.Accounts.Current(ctx)
	if err != nil {
		return nil, err
	}
	rules := a.Reloadable.CredentialRules()
	isCurrent := func(s *credentialSet) bool { return s.accounts.IsSince(accounts) && s.rules == rules && s.mark >= mark }
	return a.credentials.Get(ctx, isCurrent, func(ctx context.Context, last *credentialSet) (*credentialSet, error) {
		return a.newCredentialSet(ctx, &credentialSet{accounts: accounts, rules: rules}, last)
	})
}

// maxNamedAccounts is of how many accounts the Namespaces are read by their names. If more have changed, all are
// read, because databases limit the parameters of a statement.
const maxNamedAccounts = 500

// newCredentialSet completes a set with what has not changed since the last one, which may be nil.
func (a *api) newCredentialSet(ctx context.Context, set, last *credentialSet) (*credentialSet, error) {
	isFirst := last == nil
	if isFirst {
		last = &credentialSet{}
	}
	changed := a.Store.ChangedAccounts(last.mark) // before the read, so that no change is missed
	set.mark = changed.Mark
	names := append(set.accounts.Changed(last.accounts), changed.Names...)
	readsAll := isFirst || changed.All || set.rules != last.rules || len(names) > maxNamedAccounts
	var read map[vedette.AccountName][]string
	var err error
	switch {
	case readsAll:
		names = append(names, set.accounts.Names()...)
		read, err = a.Store.Namespaces(ctx)
	case len(names) > 0:
		read, err = a.Store.Namespaces(ctx, names...)
	}
	if err != nil {
		return nil, err
	}
	changes, err := a.encodeCredentials(set, last, names, read)
	if err != nil {
		return nil, err
	}
	if len(changes) == 0 && !isFirst {
		set.credentials = last.credentials
		set.plain, set.expanded = last.plain, last.expanded
		return set, nil
	}
	set.credentials = last.credentials.With(changes)
	set.plain = sync.OnceValue(func() credentialList { return set.join((*credential).getPlain) })
	set.expanded = sync.OnceValue(func() credentialList { return set.join((*credential).getExpanded) })
	return set, nil
}

// encodeCredentials encodes those of the named accounts that differ from the last set. An account that is gone is nil.
func (a *api) encodeCredentials(set, last *credentialSet, names []vedette.AccountName,
	namespaces map[vedette.AccountName][]string) (map[vedette.AccountName]*credential, error) {
	changes := map[vedette.AccountName]*credential{}
	for _, name := range names {
		row, known := set.accounts.Row(name), last.credentials.Get(name)
		_, isDone := changes[name]
		switch isSame := known != nil && known.row == row && slices.Equal(known.namespaces, namespaces[name]); {
		case isDone || row == nil && known == nil || isSame && set.rules == last.rules:
			continue
		case row == nil:
			changes[name] = nil
			continue
		}
		encoded, err := a.encodeCredential(row, namespaces[name])
		if err != nil {
			return nil, err
		}
		changes[name] = encoded
	}
	return changes, nil
}

// join returns the JSON of all accounts as a list.
func (s *credentialSet) join(text func(*credential) []byte) credentialList {
	size := len("[]\n")
	for _, c := range s.credentials.All() {
		size += len(text(c)) + len(",")
	}
	body := append(make([]byte, 0, size), '[')
	for _, c := range s.credentials.All() {
		body = append(append(body, text(c)...), ',')
	}
	if s.credentials.Len() > 0 {
		body = body[:len(body)-1]
	}
	body = append(body, "]\n"...)
	return credentialList{body, xxhash.Sum64(body)}
}

func (a *api) encodeCredential(row *accountlist.Row, namespaces []string) (*credential, error) {
	view := a.newExpandedView(row, namespaces)
	plain, err := rest.Encode(view.credentialView)
	if err != nil {
		return nil, err
	}
	expanded, err := rest.Encode(view)
	return &credential{row, namespaces, bytes.TrimSpace(plain), bytes.TrimSpace(expanded)}, err
}
