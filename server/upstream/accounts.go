package upstream

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
)

// accountSource knows the accounts of agents.
type accountSource interface {
	// AccountsVersion changes before anybody can read that an account has changed.
	AccountsVersion() uint64
	AccountSyncs(ctx context.Context) ([]store.AccountSync, error)
}

// accountTimeout bounds a read of the accounts.
const accountTimeout = 5 * time.Second

// accountSet says for which accounts this server answers at one time. One set decides about all parts of an answer. It is
// not changed.
type accountSet struct {
	// owned are the accounts for which this server answers, by when they were settled: an account that leaves and comes back is
	// settled at another time.
	owned map[vedette.AccountName]time.Time
	// folded are their names as other services compare them.
	folded map[string]struct{}
	// arriving are the accounts that agents have registered, and for which this server does not answer yet.
	arriving map[vedette.AccountName]struct{}
}

// newAccountSet returns the set of accounts. This server answers for an account whose first synchronization is complete, and
// for one of which it has all that its agent may read, unless the upstream Clouddriver has that account too.
func newAccountSet(syncs []store.AccountSync, isTheirs func(account string) answerOf) *accountSet {
	s := &accountSet{map[vedette.AccountName]time.Time{}, map[string]struct{}{}, map[vedette.AccountName]struct{}{}}
	for _, a := range syncs {
		if !a.Complete.IsZero() || !a.Settled.IsZero() && isTheirs(string(a.Account)) == no {
			s.owned[a.Account], s.folded[a.Account.Folded()] = a.Settled, struct{}{}
		} else {
			s.arriving[a.Account] = struct{}{}
		}
	}
	return s
}

// has reports whether this server answers for an account.
func (s *accountSet) has(name string) bool {
	_, ok := s.owned[vedette.AccountName(name)]
	return ok
}

// isArriving reports whether an agent has registered an account for which this server does not answer yet.
func (s *accountSet) isArriving(name string) bool {
	_, ok := s.arriving[vedette.AccountName(name)]
	return ok
}

// hides reports whether answers leave out an account of the upstream Clouddriver: this server answers for it, or
// Spinnaker's services take it for such an account, and would give its permissions to that one.
func (s *accountSet) hides(name string) bool {
	_, ok := s.folded[vedette.AccountName(name).Folded()]
	return ok
}

// holdsLater reports whether an answer that was made of both parts since s is right. It is not if an account has left, because either
// part may lack it, nor if an account that was left out of this server's part is owned now: the other part may lack it already.
func (s *accountSet) holdsLater(later *accountSet) bool {
	if s == later {
		return true
	}
	for name, settled := range s.owned {
		if now, ok := later.owned[name]; !ok || !now.Equal(settled) {
			return false
		}
	}
	for name := range s.arriving {
		if _, ok := later.owned[name]; ok {
			return false
		}
	}
	return true
}

// mayExceed reports whether an answer that this server's API gave between both sets may have other accounts than those of s.
func (s *accountSet) mayExceed(later *accountSet) bool {
	if len(s.arriving) > 0 {
		return true
	}
	if len(later.arriving) > 0 {
		return true // none of them is in s.owned, or else it has left
	}
	for name := range later.owned {
		if _, ok := s.owned[name]; !ok {
			return true
		}
	}
	return false
}

// accountCache knows for which accounts this server answers. It is safe for concurrent use.
type accountCache struct {
	source  accountSource
	index   *index
	missing func(ctx context.Context, account vedette.AccountName) string
	// readIndex reads the accounts of the upstream Clouddriver, if it can.
	readIndex func(ctx context.Context)
	reads     singleflight.Group

	mu      sync.Mutex
	set     *accountSet // nil before the first read
	version accountsVersion
}

// accountsVersion tells whether a set may be outdated.
type accountsVersion struct{ ours, theirs uint64 }

// current returns the accounts for which this server answers now. If they cannot be read, it returns those that were read
// last, so that a database that does not answer does not affect accounts of others. That is good enough for requests about one account:
// the API of this server fails without the database, too.
func (c *accountCache) current(ctx context.Context) (*accountSet, error) {
	set, err := c.exact(ctx)
	if err == nil || ctx.Err() != nil {
		return set, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.set == nil {
		return nil, err
	}
	return c.set, nil
}

// exact returns the accounts for which this server answers now, or an error if they cannot be read.
func (c *accountCache) exact(ctx context.Context) (*accountSet, error) {
	version := accountsVersion{c.source.AccountsVersion(), c.index.accountsVersion()}
	c.mu.Lock()
	set, isFresh := c.set, c.set != nil && c.version == version
	c.mu.Unlock()
	if isFresh {
		return set, nil
	}
	// A read that began before the change would not see it, so the version is the key.
	result := c.reads.DoChan(fmt.Sprint(version), func() (any, error) { return c.read(ctx, version) })
	select {
	case r := <-result:
		read, _ := r.Val.(*accountSet)
		return read, r.Err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// read reads the accounts. It continues if the caller leaves, because others wait for it too.
func (c *accountCache) read(ctx context.Context, version accountsVersion) (*accountSet, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), accountTimeout)
	defer cancel()
	syncs, err := c.source.AccountSyncs(ctx)
	if err != nil {
		return nil, err
	}
	isPartOfOne := func(a store.AccountSync) bool { return !a.Settled.IsZero() && a.Complete.IsZero() }
	if slices.ContainsFunc(syncs, isPartOfOne) && c.index.lastAccount("") == unknown {
		c.readIndex(ctx) // before it is known whether the upstream Clouddriver has them, neither side may answer
	}
	set := newAccountSet(syncs, c.index.lastAccount)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set, c.version = set, version
	return set, nil
}

// checkArriving returns an error for an account that an agent is reading, and that the upstream Clouddriver does not have. To say
// that it does not exist would be wrong soon.
func checkArriving(ctx context.Context, c *accountCache, ours *accountSet, account string) error {
	if !ours.isArriving(account) || c.index.hasAccount(account) != no {
		return nil
	}
	return vedette.Errorf(vedette.Unavailable, "account %.300s is being read by its agent for the first time: %s. Try again later, and see `vedette accounts -o wide`",
		account, c.missing(ctx, vedette.AccountName(account)))
}
