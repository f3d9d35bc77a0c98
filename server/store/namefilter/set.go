package namefilter

import (
	"sync"
)

// Set say which accounts cannot have what is searched for, so that a search for a rare text
// need not compare the names of all objects. They are in memory. Other servers that write the database tell the names
// that they add; while they cannot, no filter is used. An account whose filter is not built yet may have everything.
type Set struct {
	mu    sync.RWMutex
	ready map[int64]*Filter // by account
	next  map[int64]*Filter // those that are being built; their names are incomplete
}

// Of returns the filters to which a writer of an account adds names before it commits them. The account is locked.
func (s *Set) Of(accountID int64) (filters []*Filter) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, f := range []*Filter{s.ready[accountID], s.next[accountID]} {
		if f != nil {
			filters = append(filters, f)
		}
	}
	return filters
}

// NeedsBuilding reports whether an account has no filter, or one that is worn.
func (s *Set) NeedsBuilding(accountID int64) bool {
	s.mu.RLock()
	f := s.ready[accountID]
	s.mu.RUnlock()
	return f == nil || f.IsWorn()
}

// Begin makes writers add their names to a new filter.
func (s *Set) Begin(accountID int64) *Filter {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = map[int64]*Filter{}
	}
	f := New()
	s.next[accountID] = f
	return f
}

// End makes searches use the filter that was begun, if all names are in it.
func (s *Set) End(accountID int64, complete bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if complete && s.next[accountID] != nil {
		if s.ready == nil {
			s.ready = map[int64]*Filter{}
		}
		s.ready[accountID] = s.next[accountID]
	}
	delete(s.next, accountID)
}

// ForgetExcept drops the filters of accounts that do not exist any more.
func (s *Set) ForgetExcept(exists func(accountID int64) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.ready {
		if !exists(id) {
			delete(s.ready, id)
		}
	}
}

// Forget drops the filter of an account, also one that is being built.
func (s *Set) Forget(accountID int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ready, accountID)
	delete(s.next, accountID)
}

// ForgetAll is Forget for all accounts.
func (s *Set) ForgetAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.ready)
	clear(s.next)
}

// MayContain reports whether an account may have an object of one of the kinds with the pattern in
// its name or namespace.
func (s *Set) MayContain(accountID int64, p Pattern, kinds []int64) bool {
	s.mu.RLock()
	f := s.ready[accountID]
	s.mu.RUnlock()
	return f == nil || f.MayContain(p, kinds)
}
