package clouddriver

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// credentialCache keeps the answers about accounts, because Gate, Fiat and Deck ask for those of
// all accounts every few seconds. The store says which accounts have changed, so a request reads
// those only, with the same number of statements however many they are.
type credentialCache struct {
	api *api
	// turn holds a value while nobody reads the store. The fields below belong to whoever has taken
	// it. It is not a mutex, because a request must not wait longer than its client.
	turn chan struct{}

	rules    *CredentialRules // of the views
	mark     uint64           // 0 until the first read
	isLoaded bool
	names    []vedette.AccountName // sorted
	views    map[vedette.AccountName]encodedCredential
	lists    map[bool]*credentialList // by whether they are expanded; emptied by a change
}

// credentialList is the answer with all accounts. It is not changed anymore.
type credentialList struct {
	body []byte
	tag  uint64
}

// encodedCredential is the JSON of one account.
type encodedCredential struct{ plain, expanded []byte }

func (e encodedCredential) get(expanded bool) []byte {
	if expanded {
		return e.expanded
	}
	return e.plain
}

func newCredentialCache(a *api) *credentialCache {
	c := &credentialCache{api: a, turn: make(chan struct{}, 1), views: map[vedette.AccountName]encodedCredential{},
		lists: map[bool]*credentialList{}}
	c.turn <- struct{}{}
	return c
}

// list returns the JSON of all accounts.
func (c *credentialCache) list(ctx context.Context, expanded bool) (*credentialList, error) {
	select {
	case <-c.turn:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the accounts: %w", context.Cause(ctx))
	}
	defer func() { c.turn <- struct{}{} }()
	if err := c.refresh(ctx); err != nil {
		return nil, err
	}
	if c.lists[expanded] == nil {
		body := c.join(expanded)
		c.lists[expanded] = &credentialList{body, xxhash.Sum64(body)}
	}
	return c.lists[expanded], nil
}

// join returns the JSON of all accounts as a list.
func (c *credentialCache) join(expanded bool) []byte {
	size := len("[]\n")
	for _, name := range c.names {
		size += len(c.views[name].get(expanded)) + len(",")
	}
	body := append(make([]byte, 0, size), '[')
	for i, name := range c.names {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, c.views[name].get(expanded)...)
	}
	return append(body, "]\n"...)
}

// maxNamedAccounts is how many accounts are read by their names. If more have changed, all are
// read, because databases limit the parameters of a statement.
const maxNamedAccounts = 500

// refresh reads the accounts that have changed since the last call.
func (c *credentialCache) refresh(ctx context.Context) error {
	if err := c.api.Store.CheckLease(ctx); err != nil {
		return err
	}
	changed, now := c.api.Store.ChangedAccounts(c.mark) // before the read, so that no change is missed
	if rules := c.api.Live.CredentialRules(); rules != c.rules {
		c.rules, c.isLoaded = rules, false
	}
	if c.isLoaded && len(changed) == 0 {
		return nil
	}
	if !c.isLoaded || len(changed) > maxNamedAccounts {
		changed = nil
	}
	read, err := c.api.readCredentials(ctx, changed)
	if err != nil {
		return err
	}
	if changed == nil {
		clear(c.views)
	}
	for _, name := range changed { // it may be gone
		delete(c.views, name)
	}
	for _, view := range read {
		encoded, err := encodeCredential(view)
		if err != nil {
			return err
		}
		c.views[view.Name] = encoded
	}
	c.names = c.names[:0]
	for name := range c.views {
		c.names = append(c.names, name)
	}
	slices.Sort(c.names)
	clear(c.lists)
	c.mark, c.isLoaded = now, true
	return nil
}

func encodeCredential(view expandedView) (encodedCredential, error) {
	plain, err := encode(view.credentialView)
	if err != nil {
		return encodedCredential{}, err
	}
	expanded, err := encode(view)
	return encodedCredential{bytes.TrimSpace(plain), bytes.TrimSpace(expanded)}, err
}

// readCredentials reads accounts, or all accounts if none is given.
func (a *api) readCredentials(ctx context.Context, accounts []vedette.AccountName) ([]expandedView, error) {
	rows, err := a.readAccounts(ctx, accounts)
	if err != nil {
		return nil, err
	}
	namespaces, err := a.Store.Namespaces(ctx, accounts...)
	if err != nil {
		return nil, err
	}
	views := make([]expandedView, len(rows))
	for i, row := range rows {
		views[i] = a.newExpandedView(row, namespaces[row.Name])
	}
	return views, nil
}

func (a *api) readAccounts(ctx context.Context, names []vedette.AccountName) ([]store.AccountRow, error) {
	if len(names) == 0 {
		return a.Store.Accounts(ctx)
	}
	return a.Store.AccountsNamed(ctx, names...)
}
