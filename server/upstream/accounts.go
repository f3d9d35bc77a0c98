package upstream

import (
	"context"
	"errors"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/latest"
	"github.com/vedette-io/vedette/server/accountlist"
)

// accountTimeout bounds how long a request waits for the accounts.
const accountTimeout = 5 * time.Second

var (
	errAccountsTimeout = vedette.Errorf(vedette.Unavailable, "the database does not say within %v which accounts agents have: try again later", accountTimeout)
	// errAccountsLate is for a request that has less time than that.
	errAccountsLate = vedette.Errorf(vedette.Unavailable, "the time for an answer of both Clouddrivers ended before it was known which accounts agents have: "+
		"try again later, or set upstream.mergeTimeout higher")
)

// accountSet says for which accounts this server answers at one time. One set decides about all parts of an answer. It is
// not changed.
type accountSet struct {
	list   *accountlist.List
	theirs uint64 // version of the accounts of the upstream Clouddriver

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
func newAccountSet(list *accountlist.List, theirs uint64, isTheirs func(account string) answerOf) *accountSet {
	s := &accountSet{list, theirs, map[vedette.AccountName]time.Time{}, map[string]struct{}{}, map[vedette.AccountName]struct{}{}}
	for name, row := range list.Rows() {
		first := row.FirstSync
		if !first.Complete.IsZero() || !first.Settled.IsZero() && isTheirs(string(name)) == no {
			s.owned[name], s.folded[name.Folded()] = first.Settled, struct{}{}
		} else {
			s.arriving[name] = struct{}{}
		}
	}
	return s
}

// Has reports whether this server answers for an account.
func (s *accountSet) Has(name string) bool {
	_, ok := s.owned[vedette.AccountName(name)]
	return ok
}

// isArriving reports whether an agent has registered an account for which this server does not answer yet.
func (s *accountSet) isArriving(name string) bool {
	_, ok := s.arriving[vedette.AccountName(name)]
	return ok
}

// Hides reports whether answers leave out an account of the upstream Clouddriver: this server answers for it, or
// Spinnaker's services take it for such an account, and would give its permissions to that one.
func (s *accountSet) Hides(name string) bool {
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
	if len(s.arriving) > 0 || len(later.arriving) > 0 { // none of the later ones is in s.owned, or else it has left
		return true
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
	accounts *accountlist.Cache
	index    *index
	missing  func(ctx context.Context, account vedette.AccountName) string
	// readIndex reads the accounts of the upstream Clouddriver, if it can.
	readIndex func(ctx context.Context)
	sets      latest.Value[accountSet]
}

// current returns the accounts for which this server answers now. If they cannot be read, it returns those that were read
// last, so that a database that does not answer does not affect accounts of others. That is good enough for requests about one account:
// the API of this server fails without the database, too.
func (c *accountCache) current(ctx context.Context) (*accountSet, error) {
	set, err := c.exact(ctx)
	if err == nil || ctx.Err() != nil {
		return set, err
	}
	if last := c.sets.Last(); last != nil {
		return last, nil
	}
	return nil, err
}

// exact returns the accounts for which this server answers now, or an error if they cannot be read.
func (c *accountCache) exact(ctx context.Context) (*accountSet, error) {
	set, err := c.read(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, errAccountsLate
	}
	return set, err
}

func (c *accountCache) read(ctx context.Context) (*accountSet, error) {
	theirs := c.index.accountsVersion()
	list, err := c.list(ctx)
	if err != nil {
		return nil, err
	}
	isCurrent := func(s *accountSet) bool { return s.list.IsSince(list) && s.theirs >= theirs }
	return c.sets.Get(ctx, isCurrent, func(ctx context.Context, _ *accountSet) (*accountSet, error) {
		for _, row := range list.Rows() {
			if isPartOfOne := !row.FirstSync.Settled.IsZero() && row.FirstSync.Complete.IsZero(); isPartOfOne && c.index.lastAccount("") == unknown {
				ctx, cancel := context.WithTimeout(ctx, accountTimeout)
				c.readIndex(ctx) // before it is known whether the upstream Clouddriver has it, neither side may answer
				cancel()
				break
			}
		}
		return newAccountSet(list, theirs, c.index.lastAccount), nil
	})
}

// list returns all accounts. Its time limit does not count the wait for the upstream Clouddriver, which has its own.
func (c *accountCache) list(ctx context.Context) (*accountlist.List, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, accountTimeout, errAccountsTimeout)
	defer cancel()
	return c.accounts.Current(ctx)
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
