package store

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/vedette-io/vedette"
)

// Versions tell caches whether what they hold may have changed. A cache asks for the version
// before it reads, and keeps the answer together with it. They are counters in memory, because
// only this process writes the database.

// stripeCount is the number of counters that all names of a kind share, so that memory does not
// grow with the names. Two names that share a counter invalidate each other's caches.
const stripeCount = 4096

// stripes is a set of counters.
type stripes [stripeCount / 64]uint64

func (s *stripes) add(stripe uint64) { s[stripe/64] |= 1 << (stripe % 64) }

func (s *stripes) union(other *stripes) {
	for i := range s {
		s[i] |= other[i]
	}
}

// effect is what a transaction changes for readers.
type effect struct {
	account      vedette.AccountName
	applications stripes
	namespaces   stripes
	objects      bool // any
	clusters     bool // which clusters exist, or their counts
	accountRow   bool // the account has appeared, changed or disappeared
	// changed are the objects. If unnamed is true, others have changed, too.
	changed []changedObject
	unnamed bool
}

func applicationStripe(application string) uint64 {
	return xxhash.Sum64String(application) % stripeCount
}

func namespaceStripe(account vedette.AccountName, namespace string) uint64 {
	return xxhash.Sum64String(string(account)+"\x00"+namespace) % stripeCount
}

func (e *effect) addObject(application string, key rowKey) {
	e.objects = true
	e.applications.add(applicationStripe(application))
	e.namespaces.add(namespaceStripe(e.account, key.namespace))
	c := changedObject{key, e.account, application}
	if n := len(e.changed); n == 0 || e.changed[n-1] != c {
		e.changed = append(e.changed, c)
	}
}

func (e *effect) union(other *effect) {
	e.applications.union(&other.applications)
	e.namespaces.union(&other.namespaces)
	e.objects, e.clusters, e.accountRow = e.objects || other.objects, e.clusters || other.clusters, e.accountRow || other.accountRow
	e.unnamed = e.unnamed || other.objects // unions are kept, so they must not grow
}

// accountEffect is the effect of a change of an account's row, with which all objects of
// the account may appear or disappear.
func accountEffect(account vedette.AccountName, visibility bool) *effect {
	e := &effect{account: account, accountRow: true, clusters: visibility}
	if visibility {
		e.objects, e.unnamed = true, true
		for i := range e.applications {
			e.applications[i], e.namespaces[i] = ^uint64(0), ^uint64(0)
		}
	}
	return e
}

// settleTime is after which time a transaction whose outcome is not known has ended: the database
// ends it when its connection is lost or idle.
const settleTime = 2 * mysqlIdleTimeout

// versions are the counters.
type versions struct {
	applications [stripeCount]atomic.Uint64
	namespaces   [stripeCount]atomic.Uint64
	accounts     atomic.Uint64
	accountLog   accountLog
	changes      changeLog
	inventory    inventory

	mu        sync.Mutex
	uncertain map[vedette.AccountName]*uncertainEffect
	pending   atomic.Bool // uncertain is not empty
}

// publishOutcome publishes the effect of a transaction that ended with an error, or nil.
func (v *versions) publishOutcome(e *effect, err error) {
	if err != nil {
		v.publishUncertain(e)
		return
	}
	v.publish(e)
}

// uncertainEffect is the effect of transactions of an account whose outcome is not known.
type uncertainEffect struct {
	effect
	until time.Time
}

// publish makes caches read again what a transaction has changed.
func (v *versions) publish(e *effect) {
	if e.accountRow {
		v.accountLog.note(e.account) // first: who sees the new version finds the account
		v.accounts.Add(1)
	}
	if e.unnamed {
		v.changes.forget()
	} else {
		v.changes.note(e.changed)
	}
	if e.objects { // after the accounts: who sees the new version reads objects of the new accounts
		increment(&v.applications, &e.applications)
		increment(&v.namespaces, &e.namespaces)
	}
	if e.clusters {
		v.inventory.markStale(e.account)
	}
}

func increment(counters *[stripeCount]atomic.Uint64, changed *stripes) {
	for i, word := range changed {
		for ; word != 0; word &= word - 1 {
			counters[i*64+bits.TrailingZeros64(word)].Add(1)
		}
	}
}

// publishUncertain is publish for a transaction whose outcome is not known: it is published again
// when the transaction has certainly ended, because it may be committed after caches have read.
func (v *versions) publishUncertain(e *effect) {
	v.publish(e)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.uncertain == nil {
		v.uncertain = map[vedette.AccountName]*uncertainEffect{}
	}
	u := v.uncertain[e.account]
	if u == nil {
		u = &uncertainEffect{effect: effect{account: e.account}}
		v.uncertain[e.account] = u
	}
	u.union(e)
	u.until = time.Now().Add(settleTime)
	v.pending.Store(true)
}

// settle publishes what an account's transactions may have changed, all of which have ended.
func (v *versions) settle(account vedette.AccountName) {
	if v.pending.Load() {
		v.settleIf(func(u *uncertainEffect) bool { return u.account == account })
	}
}

// settleOld is settle for all accounts whose transactions have ended by now.
func (v *versions) settleOld() {
	if v.pending.Load() {
		now := time.Now()
		v.settleIf(func(u *uncertainEffect) bool { return !now.Before(u.until) })
	}
}

func (v *versions) settleIf(ended func(*uncertainEffect) bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for account, u := range v.uncertain {
		if ended(u) {
			delete(v.uncertain, account)
			v.publish(&u.effect)
		}
	}
	v.pending.Store(len(v.uncertain) > 0)
}

// ApplicationVersion changes whenever an object of the application may have changed in any
// account. It may change more often.
func (s *Store) ApplicationVersion(application string) uint64 {
	s.versions.settleOld()
	return s.versions.applications[applicationStripe(application)].Load()
}

// NamespaceVersion changes whenever an object in a namespace of an account may have changed. The
// namespace is empty for objects without one.
func (s *Store) NamespaceVersion(account vedette.AccountName, namespace string) uint64 {
	s.versions.settleOld()
	return s.versions.namespaces[namespaceStripe(account, namespace)].Load()
}

// AccountsVersion changes whenever an account may have been registered, removed, retired or
// restored, or its properties, its permissions or its namespaces may have changed.
func (s *Store) AccountsVersion() uint64 {
	s.versions.settleOld()
	return s.versions.accounts.Load()
}

// effect returns what a plan changes for readers.
func (p *plan) effect() *effect {
	e := &effect{account: p.batch.Account, clusters: len(p.clusters) > 0, changed: make([]changedObject, 0, len(p.rows)+len(p.removes))}
	for i := range p.rows {
		e.addObject(p.rows[i].application, p.rows[i].rowKey)
		p.addPrevious(e, p.rows[i].rowKey)
	}
	for _, key := range p.removes {
		p.addPrevious(e, key)
	}
	return e
}

// addPrevious adds the application of the stored row, which a change may have left.
func (p *plan) addPrevious(e *effect, key rowKey) {
	if previous, exists := p.baseline.existing[key]; exists {
		e.addObject(previous.application, key)
	}
}
