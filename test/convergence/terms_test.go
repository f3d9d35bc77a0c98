package convergence

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"regexp"
	"slices"
	"time"
)

// watchTerms looks at the accounts all the time until ctx ends, and returns
// what should not be: a term that fell, or two agents in one. While the database
// is away it sees nothing.
func (w *world) watchTerms(ctx context.Context) (found []string) {
	terms, holders := map[string]int64{}, map[string]string{}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		_ = w.each(ctx, `SELECT name, term, holder FROM accounts WHERE name IS NOT NULL`, func(rows *sql.Rows) error {
			var name, holder string
			var term int64
			if err := rows.Scan(&name, &term, &holder); err != nil {
				return err
			}
			if term < terms[name] {
				found = append(found, fmt.Sprintf("the term of %s fell from %d to %d", name, terms[name], term))
			}
			terms[name] = term
			key := fmt.Sprintf("%s in term %d", name, term)
			if was := holders[key]; was != "" && holder != "" && was != holder {
				found = append(found, fmt.Sprintf("%s was held by %s and then by %s", key, was, holder))
			}
			if holder != "" {
				holders[key] = holder
			}
			return nil
		})
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	return found
}

var givenAway = regexp.MustCompile(`msg="account has a cacher" account=(\S+) agent=(\S+) term=(\d+)`)

// termsGiven reads from the server's log which agent was given which term, and
// returns the terms that were given twice.
func (w *world) termsGiven() (given int, twice []string) {
	text, err := os.ReadFile(w.server.log)
	if err != nil {
		return 0, []string{err.Error()}
	}
	holders := map[string]string{}
	for _, m := range givenAway.FindAllStringSubmatch(string(text), -1) {
		key := m[1] + " in term " + m[3]
		if was := holders[key]; was != "" {
			twice = append(twice, fmt.Sprintf("%s was given to %s and to %s", key, was, m[2]))
		}
		holders[key] = m[2]
	}
	slices.Sort(twice)
	return len(holders), twice
}
