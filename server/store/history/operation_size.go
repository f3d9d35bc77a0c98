package history

import (
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// historyCost is what a database takes for the rows of an operation besides their texts, with the entries in indexes and the space that
// pages leave free, in bytes. It was measured with operations that begin and end (TestHistorySizeSQLite and the others). The size
// of the tables' files would not do: it does not fall when operations are deleted.
type historyCost struct {
	operation, change, object int64
	// textPercent is what a byte of an operation takes, which is in about one index.
	textPercent int64
	// page is the size of the pages, or chunks, that a text of more than maxRowText has for itself.
	page, maxRowText int64
}

var historyCosts = map[string]historyCost{
	sqldb.SQLite:     {operation: 650, change: 150, object: 130, textPercent: 120, page: 4 << 10, maxRowText: 2000},
	sqldb.PostgreSQL: {operation: 1400, change: 300, object: 220, textPercent: 130, page: 2 << 10, maxRowText: 2000},
	sqldb.MySQL:      {operation: 1500, change: 300, object: 300, textPercent: 130, page: 16 << 10, maxRowText: 8000},
}

// of returns about what an operation takes. PostgreSQL compresses large texts, often to a half; nobody knows before how well, so they
// count as a whole. Texts that are cut when they are stored count as they are then: agents and callers may send any.
func (c historyCost) of(o *Operation) int64 {
	q := &o.Requester
	texts := 2*min(len(o.Account), sqldb.MaxShort) + 2*min(len(q.User), sqldb.MaxShort) + 2*min(len(o.Origin), sqldb.MaxShort) +
		2*min(len(o.Namespace), sqldb.MaxShort) + 2*min(len(o.Name), sqldb.MaxName) + min(len(o.Target),
		sqldb.MaxMessage) + min(len(o.Message), sqldb.MaxMessage) +
		min(len(q.Claimed), maxProof) + min(len(q.Proven), maxProof) + min(len(o.Kind), sqldb.MaxCluster)
	n := c.operation + int64(texts)*c.textPercent/100
	for _, key := range o.Objects { // in the primary key and two indexes
		kind := min(len(key.Kind.Name)+len(key.Kind.Group), sqldb.MaxCluster)
		n += c.object + 3*int64(kind+min(len(key.Namespace), sqldb.MaxShort)+min(len(key.Name), sqldb.MaxName))
	}
	var changes int64
	for i := range o.Changes {
		change := &o.Changes[i]
		changes += c.change + int64(len(change.Patch)+len(change.Note)+len(change.Key.Name)+len(change.Key.Namespace)+len(change.Key.Kind.Name)+
			len(change.Key.Kind.Group)+len(change.Before)+len(change.After)+len(change.TemplateBefore)+len(change.TemplateAfter))*11/10
	}
	if changes > c.maxRowText {
		changes = (changes + c.page - 1) / c.page * c.page
	}
	return n + changes
}
