package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/vedette-io/vedette"
)

// ErrHistory means that the database is now served by a machine whose history is another one: a replica that was promoted may lack the last
// commits that the former primary had confirmed. What this process remembers of the database may not be true any more: ids of
// dictionaries and kinds, terms, marks that agents were told. So nothing more is read or written. The process must open the database
// anew; agents then continue from the marks that are stored.
var ErrHistory = errors.New("the history of the database has changed")

// databaseHistory is the history that a process has based itself on.
type databaseHistory struct {
	mu      sync.Mutex
	id      string // as the first connection showed it; empty until then
	changed error
}

// observe compares the history that a connection shows. It returns ErrHistory for another one, now and forever. Empty means that
// the connection does not tell, as a replica's, which takes no writes.
func (h *databaseHistory) observe(id string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case id == "" || h.changed != nil:
	case h.id == "":
		h.id = id
	case h.id != id:
		h.changed = fmt.Errorf("%w: %w", vedette.Errorf(vedette.Unavailable,
			"another database server has taken over (%s instead of %s), which may lack the last commits: this server stops, and must be started again", id, h.id), ErrHistory)
	}
	return h.changed
}

// err returns ErrHistory if the history has changed.
func (h *databaseHistory) err() error { return h.observe("") }

// verifyHistory compares the history that a transaction shows, if connections of the database's server are given to others behind a
// pooler, so that a connection that stays open may lead to another machine.
func (d *DB) verifyHistory(ctx context.Context, tx *sql.Tx) error {
	if d.historyOf == nil {
		return d.history.err()
	}
	id, err := d.historyOf(ctx, tx)
	if err != nil {
		return fmt.Errorf("read which server it is: %w", err)
	}
	return d.history.observe(id)
}

// checkReplica returns an error unless a replica has the history that this process has based itself on.
func (h *databaseHistory) checkReplica(id string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case id == "":
		return vedette.Errorf(vedette.Invalid, "it is no replica: name only servers that follow the primary")
	case id != h.id:
		return vedette.Errorf(vedette.Unavailable, "it has another history than the primary (%s instead of %s): it follows another server, "+
			"or has not written a restart point since the last failover", id, h.id)
	}
	return nil
}
