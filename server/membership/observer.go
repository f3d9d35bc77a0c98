// Package membership knows which servers share the database, and which of them have ended. Each server has a row that it renews once a
// second (docs/decisions/0185). A server that has not renewed its row for a while is evicted by any other.
package membership

import (
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/lease"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// observer decides which servers have ended. It does no I/O and reads no clock.
type observer struct {
	self  vedette.ServerID
	first map[vedette.ServerID]observation
}

// observation is a row as it was first read. It stays while the row is not renewed.
type observation struct {
	token   string
	renewed time.Time // by the database's clock
	at      time.Time // when it was first read, by the local clock
}

func newObserver(self vedette.ServerID) *observer {
	return &observer{self: self, first: map[vedette.ServerID]observation{}}
}

// observe returns the servers that have not renewed their rows for lease.SharedTTL. A row must have been watched for a while, because the
// clock of the database may have been set forward, and the reader may have been frozen: it counts from the beginning of a read, and a
// first read is not enough.
func (o *observer) observe(rows []sqldb.SharingServer, readAt time.Time) (expired []sqldb.SharingServer) {
	seen := map[vedette.ServerID]bool{}
	for _, row := range rows {
		seen[row.ID] = true
		first, known := o.first[row.ID]
		if !known || first.token != row.Token || !first.renewed.Equal(row.Renewed) {
			o.first[row.ID] = observation{row.Token, row.Renewed, readAt}
			continue
		}
		watched := readAt.Sub(first.at)
		isOld := row.Now.Sub(row.Renewed) >= lease.SharedTTL || watched >= lease.SharedTTL
		if row.ID != o.self && watched >= lease.RenewInterval*3/2 && isOld {
			expired = append(expired, row)
		}
	}
	for id := range o.first {
		if !seen[id] {
			delete(o.first, id)
		}
	}
	return expired
}
