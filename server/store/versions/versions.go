package versions

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/vedette-io/vedette"
)

// Versions tell caches whether what they hold may have changed. A cache asks for the version
// before it reads, and keeps the answer together with it. They are counters in memory. If other servers
// share the database, these publish here what they have changed; while they cannot, everything changes all the time.

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

// Effect is what a transaction changes for readers.
type Effect struct {
	Account      vedette.AccountName
	applications stripes
	namespaces   stripes
	objects      bool // any
	Clusters     bool // which clusters exist, or their counts
	accountRow   bool // the account has appeared, changed or disappeared
	// changed are the objects. If unnamed is true, others have changed, too.
	Changed []ChangedObject
	unnamed bool
}

func applicationStripe(application string) uint64 {
	return xxhash.Sum64String(application) % stripeCount
}

func namespaceStripe(account vedette.AccountName, namespace string) uint64 {
	return xxhash.Sum64String(string(account)+"\x00"+namespace) % stripeCount
}

// AddObject adds an object of an application.
func (e *Effect) AddObject(application string, kindID int64, namespace, name string) {
	e.objects = true
	e.applications.add(applicationStripe(application))
	e.namespaces.add(namespaceStripe(e.Account, namespace))
	c := ChangedObject{kindID, namespace, name, e.Account, application}
	if n := len(e.Changed); n == 0 || e.Changed[n-1] != c {
		e.Changed = append(e.Changed, c)
	}
}

func (e *Effect) union(other *Effect) {
	e.applications.union(&other.applications)
	e.namespaces.union(&other.namespaces)
	e.objects = e.objects || other.objects
	e.Clusters = e.Clusters || other.Clusters
	e.accountRow = e.accountRow || other.accountRow
	e.unnamed = e.unnamed || other.objects // unions are kept, so they must not grow
}

// AccountEffect is the effect of a change of an account's row, with which all objects of
// the account may appear or disappear.
func AccountEffect(account vedette.AccountName, visibility bool) *Effect {
	e := &Effect{Account: account, accountRow: true, Clusters: visibility}
	if visibility {
		e.objects, e.unnamed = true, true
		for i := range e.applications {
			e.applications[i], e.namespaces[i] = ^uint64(0), ^uint64(0)
		}
	}
	return e
}

// Versions are the counters.
type Versions struct {
	settleTime time.Duration // after which a transaction whose outcome is not known has ended

	applications  [stripeCount]atomic.Uint64
	namespaces    [stripeCount]atomic.Uint64
	accounts      atomic.Uint64
	AccountLog    *accountLog
	Changes       changeLog
	onAll         func()                    // called by PublishAll
	onVisibility  func(vedette.AccountName) // called when an account has appeared or disappeared
	StaleClusters staleAccounts

	parent *Versions // nil unless this counts what changes in one of several databases, see NewPart
	part   int64
	parts  []*Versions // not changed after the start

	mu        sync.Mutex
	uncertain map[vedette.AccountName]*uncertainEffect
	pending   atomic.Bool // uncertain is not empty

	sharing atomic.Pointer[Sharing] // nil if only this process writes the database
}

// Sharing connects the versions with those of other servers that write the same database. Its functions must not block.
type Sharing struct {
	// IsCurrent reports whether all that other servers have changed was published here.
	IsCurrent func() bool
	// Published is called with what this process has changed.
	Published func(*Effect)
}

// SetSharing says that other servers write the database, too.
func (v *Versions) SetSharing(s Sharing) { v.sharing.Store(&s) }

// IsCurrent reports whether what caches hold is known to be valid if their versions have not changed.
func (v *Versions) IsCurrent() bool {
	if v.parent != nil {
		return v.parent.IsCurrent()
	}
	s := v.sharing.Load()
	return s == nil || s.IsCurrent()
}

// staleAccounts are accounts whose rows of clusters may have changed since they were read.
type staleAccounts struct {
	mu       sync.Mutex
	accounts map[vedette.AccountName]bool
	all      bool
}

func (s *staleAccounts) markAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accounts, s.all = nil, true
}

// Restore takes back what Take returned.
func (s *staleAccounts) Restore(accounts map[vedette.AccountName]bool, all bool) {
	if all {
		s.markAll()
		return
	}
	for account := range accounts {
		s.Mark(account)
	}
}

func (s *staleAccounts) Mark(account vedette.AccountName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.accounts == nil {
		s.accounts = map[vedette.AccountName]bool{}
	}
	s.accounts[account] = true
}

// Take returns the accounts that must be read again, or that all must, and forgets them.
func (s *staleAccounts) Take() (stale map[vedette.AccountName]bool, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stale, all = s.accounts, s.all
	s.accounts, s.all = nil, false
	return stale, all
}

// New returns counters for a database that has ended a transaction whose outcome is not known after settleTime, because its
// connection is lost or idle.
func New(settleTime time.Duration) *Versions {
	return &Versions{settleTime: settleTime, onAll: func() {}, onVisibility: func(vedette.AccountName) {}, AccountLog: &accountLog{}}
}

// OnPublishAll adds what is called when everything may have changed. Call it before anything is published.
func (v *Versions) OnPublishAll(f func()) {
	before := v.onAll
	v.onAll = func() { before(); f() }
}

// OnVisibility sets what is called when an account has appeared or disappeared. Call it before anything is published.
func (v *Versions) OnVisibility(f func(vedette.AccountName)) { v.onVisibility = f }

// PublishOutcome publishes the effect of a transaction that ended with an error, or nil.
func (v *Versions) PublishOutcome(e *Effect, err error) {
	if err != nil {
		v.PublishUncertain(e)
		return
	}
	v.publish(e)
}

// uncertainEffect is the effect of transactions of an account whose outcome is not known.
type uncertainEffect struct {
	Effect
	until time.Time
}

// publish makes caches read again what a transaction of this process has changed.
func (v *Versions) publish(e *Effect) {
	v.PublishOther(e)
	if v.parent != nil {
		v.parent.publish(v.forParent(e))
		return
	}
	if s := v.sharing.Load(); s != nil {
		s.Published(e)
	}
}

// PublishOther makes caches read again what a transaction of another server has changed.
func (v *Versions) PublishOther(e *Effect) {
	if e.accountRow {
		if e.Clusters {
			v.onVisibility(e.Account)
		}
		v.AccountLog.Note(e.Account) // first: who sees the new version finds the account
		v.accounts.Add(1)
	}
	switch {
	case v.parent != nil: // whoever asks for changed objects asks the parent
	case e.unnamed:
		v.Changes.forget()
	default:
		v.Changes.note(e.Changed)
	}
	if e.objects { // after the accounts: who sees the new version reads objects of the new accounts
		increment(&v.applications, &e.applications)
		increment(&v.namespaces, &e.namespaces)
	}
	if e.Clusters {
		v.StaleClusters.Mark(e.Account)
	}
}

// PublishAll makes caches read everything again, because it is not known what other servers have changed.
func (v *Versions) PublishAll() {
	v.AccountLog.noteAll()
	v.accounts.Add(1)
	v.Changes.forget()
	for i := range v.applications {
		v.applications[i].Add(1)
		v.namespaces[i].Add(1)
	}
	v.StaleClusters.markAll()
	v.onAll()
	for _, part := range v.parts {
		part.PublishAll()
	}
}

// Refresh publishes what is due. Caches that read no version call it before they are used.
func (v *Versions) Refresh() {
	v.settleOld()
	if !v.IsCurrent() {
		v.PublishAll()
	}
}

func increment(counters *[stripeCount]atomic.Uint64, changed *stripes) {
	for i, word := range changed {
		for ; word != 0; word &= word - 1 {
			counters[i*64+bits.TrailingZeros64(word)].Add(1)
		}
	}
}

// PublishUncertain is publish for a transaction whose outcome is not known: it is published again
// when the transaction has certainly ended, because it may be committed after caches have read.
func (v *Versions) PublishUncertain(e *Effect) {
	v.publish(e)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.uncertain == nil {
		v.uncertain = map[vedette.AccountName]*uncertainEffect{}
	}
	u := v.uncertain[e.Account]
	if u == nil {
		u = &uncertainEffect{Effect: Effect{Account: e.Account}}
		v.uncertain[e.Account] = u
	}
	u.union(e)
	u.until = time.Now().Add(v.settleTime)
	v.pending.Store(true)
}

// Settle publishes what an account's transactions may have changed, all of which have ended.
func (v *Versions) Settle(account vedette.AccountName) {
	if v.pending.Load() {
		v.settleIf(func(u *uncertainEffect) bool { return u.Account == account })
	}
}

// settleOld is settle for all accounts whose transactions have ended by now.
func (v *Versions) settleOld() {
	for _, part := range v.parts {
		part.settleOld()
	}
	if v.pending.Load() {
		now := time.Now()
		v.settleIf(func(u *uncertainEffect) bool { return !now.Before(u.until) })
	}
}

func (v *Versions) settleIf(ended func(*uncertainEffect) bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for account, u := range v.uncertain {
		if ended(u) {
			delete(v.uncertain, account)
			v.publish(&u.Effect)
		}
	}
	v.pending.Store(len(v.uncertain) > 0)
}

// ApplicationVersion changes whenever an object of the application may have changed in any
// account. It may change more often.
func (v *Versions) ApplicationVersion(application string) uint64 {
	v.Refresh()
	return v.applications[applicationStripe(application)].Load()
}

// NamespaceVersion changes whenever an object in a namespace of an account may have changed. The
// namespace is empty for objects without one.
func (v *Versions) NamespaceVersion(account vedette.AccountName, namespace string) uint64 {
	v.Refresh()
	return v.namespaces[namespaceStripe(account, namespace)].Load()
}

// AccountsVersion changes whenever an account may have been registered, removed, retired or
// restored, or its properties, its permissions or its namespaces may have changed.
func (v *Versions) AccountsVersion() uint64 {
	v.Refresh()
	return v.accounts.Load()
}
