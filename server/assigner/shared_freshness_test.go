package assigner

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/registry"
)

// freshnessStore is what a database has of freshness. Its calls may fail, before or after they are carried out.
type freshnessStore struct {
	rows   map[vedette.AccountName]freshnessRow
	shared time.Time
	writes int // of rows
	random *rand.Rand
}

type freshnessRow struct {
	term    vedette.Term
	seen    time.Time
	follows bool
}

var errLost = errors.New("the connection is lost")

// outcome says whether a call is carried out, and what the caller learns.
func (s *freshnessStore) outcome(fails bool) (isDone bool, err error) {
	if !fails || s.random.IntN(4) > 0 {
		return true, nil
	}
	return s.random.IntN(2) == 0, errLost
}

func (s *freshnessStore) store(p freshnessPlan, shared *sharedFreshness, fails bool) {
	isDone, err := s.outcome(fails)
	if isDone {
		for _, seen := range p.separate {
			if !seen.At.IsZero() {
				s.put(seen, false)
			}
		}
	}
	if err != nil {
		return
	}
	shared.storedSeparately(p)
	if p.at.IsZero() {
		return
	}
	isDone, err = s.outcome(fails)
	if isDone {
		s.shared = p.at
		s.writes++
		for _, seen := range p.joining {
			s.put(seen, true)
		}
	}
	if err == nil {
		shared.joined(p)
	}
}

func (s *freshnessStore) put(seen registry.LastSeen, follows bool) {
	s.writes++
	if row := s.rows[seen.Account]; seen.Term >= row.term {
		s.rows[seen.Account] = freshnessRow{seen.Term, seen.At, follows}
	}
}

// read returns what readers see of an account in a term.
func (s *freshnessStore) read(name vedette.AccountName, term vedette.Term) time.Time {
	row := s.rows[name]
	switch {
	case row.term != term:
		return time.Time{}
	case row.follows:
		return later(row.seen, s.shared)
	}
	return row.seen
}

// TestSharedFreshnessIsNeverLater lets accounts fall behind, go and come back at random while calls of the store fail. What is stored is
// never later than what is known, and when nothing fails any more, it is not much earlier.
func TestSharedFreshnessIsNeverLater(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		store := &freshnessStore{rows: map[vedette.AccountName]freshnessRow{}, random: random}
		shared, now := newSharedFreshness(), time.Unix(1_000_000, 0)
		const accounts = 5
		known := map[vedette.AccountName]registry.LastSeen{}
		held, terms := map[vedette.AccountName]bool{}, map[vedette.AccountName]vedette.Term{}
		behind := map[vedette.AccountName]bool{}
		round := func(fails bool) {
			now = now.Add(freshnessInterval)
			var current []registry.LastSeen
			for i := range accounts {
				name := vedette.AccountName(fmt.Sprint(i))
				if random.IntN(6) == 0 && fails || terms[name] == 0 {
					held[name] = !held[name]
					if held[name] && (terms[name] == 0 || random.IntN(2) == 0) {
						terms[name]++
						known[name] = registry.LastSeen{Account: name, Term: terms[name]}
					}
				}
				if random.IntN(6) == 0 && fails {
					behind[name] = !behind[name]
				}
				seen := known[name]
				if held[name] && !behind[name] {
					seen.At = later(seen.At, now.Add(-time.Duration(random.IntN(12))*time.Second))
					known[name] = seen
				}
				if held[name] {
					current = append(current, seen)
				}
			}
			store.store(shared.plan(now, current), &shared, fails)
			for name, seen := range known {
				if got := store.read(name, seen.Term); got.After(seen.At) {
					t.Fatalf("seed %d: account %s is stored as complete until %v, and is until %v", seed, name, got, seen.At)
				}
			}
		}
		for range 60 {
			round(true)
		}
		for range 3 {
			round(false)
		}
		for name, seen := range known {
			if got := store.read(name, seen.Term); held[name] && !behind[name] && seen.At.Sub(got) > leaveAge {
				t.Errorf("seed %d: account %s is stored as complete until %v, and is until %v", seed, name, got, seen.At)
			}
		}
	}
}

// TestFreshAccountsTakeOneRow checks that the freshness of accounts that are all fresh is one row at a time, once they have joined.
func TestFreshAccountsTakeOneRow(t *testing.T) {
	store := &freshnessStore{rows: map[vedette.AccountName]freshnessRow{}}
	shared, now := newSharedFreshness(), time.Unix(1_000_000, 0)
	const accounts = 1000
	for round := range 5 {
		now = now.Add(freshnessInterval)
		var current []registry.LastSeen
		for i := range accounts {
			current = append(current, registry.LastSeen{Account: vedette.AccountName(fmt.Sprint(i)), Term: 1, At: now.Add(-time.Duration(i%10) * time.Second)})
		}
		store.writes = 0
		store.store(shared.plan(now, current), &shared, false)
		if want := map[bool]int{true: accounts + 1, false: 1}[round == 0]; store.writes != want {
			t.Errorf("round %d: got %d rows, want %d", round, store.writes, want)
		}
	}
}
