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

// checkTerms polls the accounts until ctx ends, and reports terms that decreased or had two agents.
// While the database is unavailable it sees nothing.
func (w *world) checkTerms(ctx context.Context) (found []string) {
	terms, holders := map[string]int64{}, map[string]string{}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		_ = w.forEachRow(ctx, `SELECT name, term, holder FROM accounts WHERE name IS NOT NULL`, func(rows *sql.Rows) error {
			var name, holder string
			var term int64
			if err := rows.Scan(&name, &term, &holder); err != nil {
				return err
			}
			if term < terms[name] {
				found = append(found, fmt.Sprintf("the term of %s decreased from %d to %d", name, terms[name], term))
			}
			terms[name] = term
			key := fmt.Sprintf("%s in term %d", name, term)
			if previous := holders[key]; previous != "" && holder != "" && previous != holder {
				found = append(found, fmt.Sprintf("%s was held by %s and then by %s", key, previous, holder))
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

var assignmentLog = regexp.MustCompile(`msg="account has a cacher" account=(\S+) agent=(\S+) term=(\d+)`)

// grantedTerms reads from the server's log which agent got which term, and returns the terms that
// were assigned twice.
func (w *world) grantedTerms() (granted int, duplicates []string) {
	text, err := os.ReadFile(w.server.Log)
	if err != nil {
		return 0, []string{err.Error()}
	}
	holders := map[string]string{}
	for _, m := range assignmentLog.FindAllStringSubmatch(string(text), -1) {
		key := m[1] + " in term " + m[3]
		if previous := holders[key]; previous != "" {
			duplicates = append(duplicates, fmt.Sprintf("%s was assigned to %s and to %s", key, previous, m[2]))
		}
		holders[key] = m[2]
	}
	slices.Sort(duplicates)
	return len(holders), duplicates
}
