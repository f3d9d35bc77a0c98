package upstream

import (
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
)

// answerOf is what is known about the upstream Clouddriver.
type answerOf int

// The answers.
const (
	unknown answerOf = iota // it has not been read yet, or too long ago
	yes
	no
)

// index knows which accounts and applications the upstream Clouddriver has, so that it is asked only where it can have
// something. It is safe for concurrent use.
type index struct {
	maxAge    time.Duration // after which it knows nothing
	freshAge  time.Duration // for how long it knows what is missing, whatever happens
	isFailing func() bool   // whether the upstream Clouddriver does not answer

	mu           sync.Mutex
	version      uint64              // of accounts
	accounts     map[string]struct{} // by folded name; nil before the first read
	accountsAt   time.Time
	applications map[string][]string // accounts by lower-case name; nil before the first read
	appsAt       time.Time
	mentioned    map[string]time.Time // applications of operations that were passed on
	empty        map[string]time.Time // requests for one application's objects whose answer was empty
}

// freshRefreshes is how many intervals a list may miss.
const freshRefreshes = 3

func newIndex(refreshInterval, maxAge time.Duration, isFailing func() bool) *index {
	return &index{
		maxAge: maxAge, freshAge: freshRefreshes * refreshInterval, isFailing: isFailing,
		mentioned: map[string]time.Time{}, empty: map[string]time.Time{},
	}
}

// accountsVersion changes whenever the accounts change.
func (x *index) accountsVersion() uint64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.version
}

func (x *index) setAccounts(names []string, at time.Time) {
	accounts := make(map[string]struct{}, len(names))
	for _, name := range names {
		accounts[vedette.AccountName(name).Folded()] = struct{}{}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if at.After(x.accountsAt) && (x.accounts == nil || !maps.Equal(x.accounts, accounts)) {
		x.version++
	}
	if at.After(x.accountsAt) {
		x.accounts, x.accountsAt = accounts, at
	}
}

// setApplications replaces the applications, each with the accounts of its clusters.
func (x *index) setApplications(accounts map[string][]string, at time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if at.After(x.appsAt) {
		x.applications, x.appsAt = accounts, at
	}
}

// isKnown reports whether a list that was read at some time says what the upstream Clouddriver lacks. An old one does only while that
// does not answer at all: otherwise it can be asked.
func (x *index) isKnown(at time.Time) bool {
	age := time.Since(at)
	return age <= x.freshAge || age <= x.maxAge && x.isFailing()
}

// lastAccount is hasAccount, however old the list is: an account that only an agent has stays that agent's.
func (x *index) lastAccount(name string) answerOf {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.accounts == nil {
		return unknown
	}
	if _, ok := x.accounts[vedette.AccountName(name).Folded()]; ok {
		return yes
	}
	return no
}

// hasAccount returns whether the upstream Clouddriver has an account, or one that services take for it.
func (x *index) hasAccount(name string) answerOf {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.accounts == nil || !x.isKnown(x.accountsAt) {
		return unknown
	}
	if _, ok := x.accounts[vedette.AccountName(name).Folded()]; ok {
		return yes
	}
	return no
}

// hasOthers returns whether the upstream Clouddriver has accounts for which this server does not answer.
func (x *index) hasOthers(ours *accountSet) answerOf {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.accounts == nil || !x.isKnown(x.accountsAt) {
		return unknown
	}
	for folded := range x.accounts {
		if _, ok := ours.folded[folded]; !ok {
			return yes
		}
	}
	return no
}

// hasApplication returns whether the upstream Clouddriver has an application outside of the accounts for which this server
// answers.
func (x *index) hasApplication(name string, ours *accountSet) answerOf {
	name = strings.ToLower(name)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.applications == nil || !x.isKnown(x.appsAt) || len(name) > maxNameBytes {
		return unknown
	}
	accounts, ok := x.applications[name]
	if at, isMentioned := x.mentioned[name]; isMentioned && time.Since(at) < mentionedMaxAge || ok && len(accounts) == 0 {
		return yes
	}
	for _, account := range accounts {
		if !ours.Hides(account) {
			return yes
		}
	}
	return no
}

const (
	// mentionedMaxAge is for how long an application is looked for in the upstream Clouddriver after an operation that was
	// passed on has named it. Clouddriver's cache sees what it has deployed after a minute or two.
	mentionedMaxAge = 10 * time.Minute
	// maxNameBytes is more than any application's name has.
	maxNameBytes = 255
	// maxRemembered bounds what is remembered of requests. What does not fit makes some requests slower while the
	// upstream Clouddriver does not answer.
	maxRemembered = 10_000
)

// mention notes that an operation that was passed on may create applications.
func (x *index) mention(applications ...string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, application := range applications {
		if len(application) <= maxNameBytes {
			remember(x.mentioned, strings.ToLower(application), mentionedMaxAge)
		}
	}
}

// setEmpty notes whether a complete answer to a request about one application was empty.
func (x *index) setEmpty(request string, isEmpty bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if isEmpty {
		remember(x.empty, request, x.maxAge)
	} else {
		delete(x.empty, request)
	}
}

// wasEmpty returns when the last complete answer to a request was empty; zero if that is not known.
func (x *index) wasEmpty(request string) time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	if at := x.empty[request]; x.isKnown(at) {
		return at
	}
	return time.Time{}
}

// remember notes a key. If there are too many, those that are too old are forgotten, or else any one.
func remember(keys map[string]time.Time, key string, maxAge time.Duration) {
	if _, ok := keys[key]; !ok && len(keys) >= maxRemembered {
		maps.DeleteFunc(keys, func(_ string, at time.Time) bool { return time.Since(at) > maxAge })
		for other := range keys {
			if len(keys) >= maxRemembered {
				delete(keys, other)
			}
			break
		}
	}
	keys[key] = time.Now()
}
