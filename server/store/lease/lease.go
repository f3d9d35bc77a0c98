// Package lease has the rules by which a process may write to a database that several can reach. The lease is a row that names the
// process that holds it, which renews it every second. Either one server uses the database alone, and there is one row; or several share
// it, and each has a row of its own (docs/decisions/0185). A server cannot stop another one that is frozen or partitioned, but it can take
// the lease over, or delete the row, if that has not been renewed for a while; the other one notices before it writes again.
//
// Package sqldb reads and writes the rows.
package lease

import (
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
)

const (
	// RenewInterval is the time between two renewals.
	RenewInterval = time.Second
	// OwnTTL is after which time without renewal a lease expires for the same server on the
	// same host. It is short because the restart has most likely ended the previous process.
	OwnTTL = 3 * time.Second
	// OtherTTL is the same for all other servers.
	OtherTTL = 10 * time.Second
	// SharedTTL is the same for a server that shares the database: the others take its accounts over.
	SharedTTL = 3 * time.Second
)

// ErrLost means that another server has taken the database over.
var ErrLost = errors.New("the lease of the database is lost")

// Table says which table a row is in.
type Table string

// The tables.
const (
	Exclusive Table = "lease"   // one row: of the server that uses the database alone
	Shared    Table = "servers" // a row for each server that shares it
)

// Row is the stored lease. Times are in microseconds of the database's clock. A free lease has no token.
type Row struct {
	Table               Table
	Server, Host, Token string
	Taken, Renewed, Now int64
}

// Age is the time since the last renewal.
func (r Row) Age() time.Duration { return time.Duration(r.Now-r.Renewed) * time.Microsecond }

// InUseError names the process because of which another one cannot use the database.
func (h *Holder) InUseError(r Row) error {
	who := fmt.Sprintf("%s on host %s, which started at %s and was last seen %v before %s by the database's clock",
		r.Server, r.Host, format(r.Taken), max(0, r.Age()).Round(time.Millisecond), format(r.Now))
	switch {
	case r.Table == Exclusive:
		return vedette.Errorf(vedette.Conflict, "the database is used by another server, which does not share it: %s. "+
			"Stop the other server, or give this one a database of its own", who)
	case r.Server == string(h.Server):
		return vedette.Errorf(vedette.Conflict, "another process has the id of this server: %s. "+
			"Give each server an id of its own, or stop the other process", who)
	}
	return vedette.Errorf(vedette.Conflict, "the database is shared by other servers, one of which is %s. "+
		"Let this server share it too (kubesvc.cluster), stop the others, or give this one a database of its own", who)
}

func format(micros int64) string { return time.UnixMicro(micros).UTC().Format(time.RFC3339) }

// Observation is the lease of another process, as it was first read.
type Observation struct {
	Row Row
	At  time.Time // by the local clock
}

// Decision is what to do about a lease.
type Decision string

// The decisions.
const (
	Take   Decision = "take"
	Wait   Decision = "wait"
	Refuse Decision = "refuse"
)

// Decide compares a lease with its first observation. If it was renewed since then, its holder is
// alive. Otherwise it has expired if it is older than ttl by the database's clock, or was watched
// for ttl, because that clock may have been set back. Its age alone does not count at the first
// observation, because the clock may just have been set forward.
func (o Observation) Decide(row Row, watched, ttl time.Duration) Decision {
	switch {
	case row.Token == "":
		return Take
	case row.Token != o.Row.Token || row.Renewed != o.Row.Renewed:
		return Refuse
	case watched >= RenewInterval*3/2 && (row.Age() >= ttl || watched >= ttl):
		return Take
	}
	return Wait
}

// Holder is a process that holds the lease, or wants it.
type Holder struct {
	Server vedette.ServerID
	Host   string
	Token  string // of this process

	mu        sync.Mutex
	confirmed time.Time // when the last successful renewal began
	lost      error
}

// NewHolder returns this process.
func NewHolder(server vedette.ServerID, host string) *Holder {
	return &Holder{Server: server, Host: host, Token: NewToken()}
}

// NewToken returns a token for a process.
func NewToken() string { return rand.Text() }

// TTL returns after which time without renewal a lease expires for this process.
func (h *Holder) TTL(row Row) time.Duration {
	if row.Table == Shared {
		return SharedTTL
	}
	if row.Server == string(h.Server) && row.Host == h.Host {
		return OwnTTL
	}
	return OtherTTL
}

// Confirm notes that the lease was taken or renewed by a statement that began at a time.
func (h *Holder) Confirm(at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.confirmed = at
}

// IsConfirmedSince reports whether a renewal that began at a time or later has succeeded.
func (h *Holder) IsConfirmedSince(t time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.confirmed.Before(t)
}

// IsFresh reports whether the lease is certainly ours. It measures time by both clocks, because
// the monotonic clock stands still while a machine is suspended, and the wall clock may be set. A
// wrong clock only causes an additional renewal. The error is ErrLost once the lease is lost.
func (h *Holder) IsFresh() (bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	elapsed := max(now.Sub(h.confirmed), now.Round(0).Sub(h.confirmed.Round(0)).Abs())
	return elapsed < OwnTTL, h.lost
}

// MarkLost notes whose the lease is now, and returns the error of all further writes. It is vedette.Unavailable, so that the data is
// not blamed.
func (h *Holder) MarkLost(row Row) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	who := fmt.Sprintf("server %s on host %s took over the database at %s", row.Server, row.Host, format(row.Taken))
	if row.Token == "" {
		who = "another server has used the database or evicted this one, or the lease was deleted"
	}
	h.lost = fmt.Errorf("%w: %w", vedette.Errorf(vedette.Unavailable, "%s, because this server had not renewed its lease; this server stops",
		who), ErrLost)
	return h.lost
}
