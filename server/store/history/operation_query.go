package history

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// Query selects operations. A field that is empty selects everything; all other fields
// must match.
type Query struct {
	Accounts []vedette.AccountName // nil for all; an empty list selects none
	Agent    vedette.AgentID
	State    vedette.OutcomeState
	Verb     vedette.Verb
	Origin   string
	User     string // vedette.Requester.User
	// Since and Until restrict when the operations were accepted: not before Since, and before Until.
	Since, Until time.Time
	EndedSince   time.Time // those that ended then or later
	// Kinds, Namespace and Name are of an object. Kinds are as vedette.Kind.String or the request writes them.
	Kinds           []string
	Namespace, Name string
	Limit           int    // 1 to 5000; 0 means 500
	After           string // cursor of the previous page
}

// operationPosition is the place of an operation in the history. Callers choose ids, so the order is that of acceptance,
// by the server's clock.
type operationPosition struct {
	accepted int64
	id       string
}

// String returns the cursor of a position. Its format is opaque and may change with any version.
func (p operationPosition) String() string { return strconv.FormatInt(p.accepted, 10) + "-" + p.id }

func parseOperationCursor(cursor string) (p operationPosition, err error) {
	accepted, id, found := strings.Cut(cursor, "-")
	p.id = id
	p.accepted, err = strconv.ParseInt(accepted, 10, 64)
	if err != nil || !found || sqldb.CheckID("operation", id) != nil {
		return p, vedette.Errorf(vedette.Invalid, "the cursor %.100q is invalid: request the first page again, without a cursor", cursor)
	}
	return p, nil
}

// Operation returns one operation, with what it changed. The error is vedette.NotFound if it is not in the history, or
// no longer.
func (h *History) Operation(ctx context.Context, id vedette.OperationID) (Operation, error) {
	var o Operation
	where, args := sqldb.Conditions{sqldb.Equals("id", string(id), sqldb.MaxID)}.Where()
	err := h.db.QueryOne(ctx, func(row sqldb.Scanner) (err error) {
		o, err = scanOperation(row)
		return err
	}, sqldb.Named("read an operation", selectOperations+where), args...)
	if errors.Is(err, sql.ErrNoRows) {
		return o, NoOperation(id)
	}
	if err == nil {
		o.Changes, err = h.operationChanges(ctx, o.ID)
	}
	return o, h.db.WrapError(fmt.Sprintf("read operation %.60s", id), err)
}

func (h *History) operationChanges(ctx context.Context, id vedette.OperationID) ([]vedette.ObjectChange, error) {
	var body string
	err := h.db.QueryOne(ctx, sqldb.ScanInto(&body), sqldb.Named("read what an operation changed", `SELECT body FROM operation_changes WHERE id = ?`), string(id))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return decodeChanges(body)
}

// NoOperation is the error for an operation that is not in the history, or that the caller may not know of.
func NoOperation(id vedette.OperationID) error {
	return vedette.Errorf(vedette.NotFound, "the history has no operation %.60s: it was never accepted, or has been deleted since", id)
}

// Operations returns a page of the operations that a query selects, the newest first, and the
// cursor of the next page, which is empty on the last one. New operations do not move those of later pages. The error is
// vedette.Invalid if the limit or the cursor is invalid.
func (h *History) Operations(ctx context.Context, q Query) ([]Operation, string, error) {
	if q.Limit == 0 {
		q.Limit = sqldb.DefaultLimit
	}
	if q.Limit < 0 || q.Limit > sqldb.MaxLimit {
		return nil, "", vedette.Errorf(vedette.Invalid, "the limit %d is not between 1 and %d", q.Limit, sqldb.MaxLimit)
	}
	where, err := q.conditions(h.unindexed)
	if err != nil {
		return nil, "", err
	}
	operations, err := h.selectOperations(ctx, append(slices.Clip(where), q.objectConditions()...), q.Limit+1)
	if object := q.objectConditions(); err == nil && len(object) > 0 {
		// As one statement with OR, databases would use no index.
		var several []Operation
		clause, args := object.Where()
		inObjects := sqldb.Cond(`id IN (SELECT id FROM operation_objects`+clause+`)`, args...)
		several, err = h.selectOperations(ctx, append(slices.Clip(where), inObjects), q.Limit+1)
		operations = mergeOperations(operations, several)
	}
	if err != nil || len(operations) <= q.Limit {
		return operations, "", h.db.WrapError("read the operations", err)
	}
	operations = operations[:q.Limit]
	last := operations[q.Limit-1]
	return operations, operationPosition{sqldb.ToMicros(last.Accepted), string(last.ID)}.String(), nil
}

func (h *History) selectOperations(ctx context.Context, where sqldb.Conditions, limit int) ([]Operation, error) {
	operations := []Operation{}
	clause, args := where.Where()
	err := h.db.QueryEach(ctx, func(rows *sql.Rows) error {
		o, err := scanOperation(rows)
		operations = append(operations, o)
		return err
	}, sqldb.Named("read operations", fmt.Sprintf(`%s%s ORDER BY accepted DESC, id DESC LIMIT %d`, selectOperations, clause, limit)), args...)
	return operations, err
}

// mergeOperations joins two pages in their order.
func mergeOperations(a, b []Operation) []Operation {
	all := append(a, b...)
	slices.SortFunc(all, func(a, b Operation) int {
		return cmp.Or(cmp.Compare(sqldb.ToMicros(b.Accepted), sqldb.ToMicros(a.Accepted)), strings.Compare(string(b.ID), string(a.ID)))
	})
	return slices.CompactFunc(all, func(a, b Operation) bool { return a.ID == b.ID })
}

// MergePages merges the pages that several databases answer to the same query, and returns the cursor of the next page as
// Operations does. hasMore says that one of them has a next page.
func MergePages(q Query, pages [][]Operation, hasMore bool) ([]Operation, string) {
	all := mergeOperations(slices.Concat(pages...), []Operation{})
	limit := cmp.Or(q.Limit, sqldb.DefaultLimit)
	if len(all) <= limit && !hasMore {
		return all, ""
	}
	all = all[:min(limit, len(all))]
	last := all[len(all)-1]
	return all, operationPosition{sqldb.ToMicros(last.Accepted), string(last.ID)}.String()
}

// conditions returns what restricts the operations themselves. Verbs and states are of many operations: with another filter,
// a planner must not choose their index.
func (q *Query) conditions(unindexed string) (sqldb.Conditions, error) {
	var where sqldb.Conditions
	if q.After != "" {
		after, err := parseOperationCursor(q.After)
		if err != nil {
			return nil, err
		}
		where = append(where, sqldb.Cond("accepted <= ?", after.accepted),
			sqldb.Cond("(accepted < ? OR id < ?)", after.accepted, after.id))
	}
	for _, t := range []struct {
		sql string
		at  time.Time
	}{{"accepted >= ?", q.Since}, {"accepted < ?", q.Until}, {"ended >= ?", q.EndedSince}} {
		if !t.at.IsZero() {
			where = append(where, sqldb.Cond(t.sql, sqldb.ToMicros(t.at)))
		}
	}
	selective := q.Accounts != nil || len(q.objectConditions()) > 0
	for _, f := range []struct {
		column, value string
		maxBytes      int
	}{
		{"origin", q.Origin, sqldb.MaxShort}, {"username", q.User, sqldb.MaxShort}, {"agent", string(q.Agent), sqldb.MaxShort},
		{"verb", string(q.Verb), sqldb.MaxWord}, {"state", string(q.State), sqldb.MaxWord},
	} {
		if f.value == "" {
			continue
		}
		if selective && (f.column == "verb" || f.column == "state") {
			f.column = unindexed + f.column
		}
		where, selective = append(where, sqldb.Equals(f.column, f.value, f.maxBytes)), true
	}
	if q.Accounts == nil {
		return where, nil
	}
	return append(where, sqldb.IsOneOf("account", q.Accounts, sqldb.MaxShort)), nil
}

// objectConditions restricts the columns that operations and operation_objects have.
func (q *Query) objectConditions() sqldb.Conditions {
	var where sqldb.Conditions
	if q.Name != "" {
		where = append(where, sqldb.Equals("name", q.Name, sqldb.MaxName))
	}
	if q.Namespace != "" {
		where = append(where, sqldb.Equals("namespace", q.Namespace, sqldb.MaxShort))
	}
	if len(q.Kinds) > 0 {
		where = append(where, sqldb.IsOneOf("kind", q.Kinds, sqldb.MaxCluster))
	}
	return where
}

func scanOperation(row sqldb.Scanner) (Operation, error) {
	var o Operation
	var id, account, agent, server, verb, state, undoes string
	var accepted, due, sent, ended int64
	q := &o.Requester
	err := row.Scan(&id, &account, &agent, &server, &verb, &o.DryRun, &o.Target, &q.User, &o.Origin, &state, &o.Status, &o.Reason, &o.Message,
		&accepted, &due, &sent, &ended, &o.Digest, &q.Claimed, &q.Proven, &q.Service, &q.Address, &o.Kind, &o.Namespace, &o.Name, &undoes)
	o.ID = vedette.OperationID(id)
	o.Account = vedette.AccountName(account)
	o.Agent = vedette.AgentID(agent)
	o.Server = vedette.ServerID(server)
	o.Verb = vedette.Verb(verb)
	o.State = vedette.OutcomeState(state)
	o.Undoes = vedette.OperationID(undoes)
	o.Accepted, o.Deadline = sqldb.FromMicros(accepted), sqldb.FromMicros(due)
	o.Sent, o.Ended = sqldb.FromMicros(sent), sqldb.FromMicros(ended)
	return o, err
}

// maxUndone is how many operations of an object are searched for the one that an undo takes back.
const maxUndone = 200

// errEnough ends a query whose further rows are not needed.
var errEnough = errors.New("no more rows are needed")

// UndoneOperation returns the operation whose change of an object was taken back by an undo, which has changed the pod template
// with the digest before into that with the digest after. It is empty if the history does not have it.
func (h *History) UndoneOperation(ctx context.Context, account vedette.AccountName, key vedette.Key,
	before, after string) (vedette.OperationID, error) {
	if before == "" {
		return "", nil
	}
	where := sqldb.Conditions{sqldb.Equals("o.account", string(account), sqldb.MaxShort), sqldb.Equals("o.name", key.Name, sqldb.MaxName),
		sqldb.Equals("o.namespace", key.Namespace, sqldb.MaxShort)}
	clause, args := where.Where()
	search := undoneSearch{before: before, after: after}
	err := h.db.QueryEach(ctx, func(rows *sql.Rows) error {
		var id, body string
		if err := rows.Scan(&id, &body); err != nil {
			return err
		}
		changes, err := decodeChanges(body)
		for _, c := range changes {
			if c.Key == key && search.visit(vedette.OperationID(id), c) {
				return errEnough
			}
		}
		return err
	}, sqldb.Named("search for the undone operation", fmt.Sprintf(`SELECT o.id, c.body FROM operations o JOIN operation_changes c ON c.id = o.id%s
		ORDER BY o.accepted DESC, o.id DESC LIMIT %d`, clause, maxUndone)), args...)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return search.undone(), h.db.WrapError(fmt.Sprintf("search the history of %s", key), err)
}

// undoneSearch finds the operation that an undo takes back, in the changes of an object from the last one on. An undo takes back
// the changes since the object last had the template that it restores. What led away from a state and back to it does not count:
// after A, B, C and an undo to B, an undo to A takes back what made B of A. Of several changes, the undo is said to take back the
// last one. If the last change did not make what the undo found, something else did, and nothing is said.
type undoneSearch struct {
	before, after string              // digests of the undo
	last          vedette.OperationID // made before of something
	first         vedette.OperationID // the same, before all that led back to it
	isWhole       bool                // the object had the template after, and the changes since were visited
}

// visit takes the next earlier change, and reports whether the search has ended.
func (u *undoneSearch) visit(id vedette.OperationID, c vedette.ObjectChange) (ends bool) {
	switch {
	case c.TemplateBefore == c.TemplateAfter:
		return false
	case c.TemplateAfter == u.before:
		u.first = id
		if u.last == "" {
			u.last = id
		}
	case c.TemplateAfter == u.after, u.last == "":
		u.isWhole = true
		return true
	}
	u.isWhole = c.TemplateBefore == u.after
	return u.isWhole
}

func (u *undoneSearch) undone() vedette.OperationID {
	if u.isWhole {
		return u.first
	}
	return u.last // what led back is not known
}
