package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
)

// Pending is the state of an operation that has no outcome yet.
const Pending vedette.OutcomeState = "pending"

// OperationRow is an operation in the history. It names what the operation changed but has no
// manifest, because that may contain Secrets.
type OperationRow struct {
	ID      vedette.OperationID
	Account vedette.AccountName
	Agent   vedette.AgentID  // that executed it; empty if it was not sent to an agent
	Server  vedette.ServerID // that accepted it
	Verb    vedette.Verb
	DryRun  bool   // it was validated and changed nothing
	Target  string // for users: "Deployment shop/web"
	User    string
	Origin  string
	State   vedette.OutcomeState // Pending until it has ended
	Status  int
	Reason  string
	Message string // truncated to 4096 bytes
	Digest  string // see vedette.Operation

	// By the clock of the server that accepted it, to the microsecond; zero if it has not
	// happened yet.
	Accepted, Sent, Ended time.Time
	Deadline              time.Time
}

// OperationQuery selects operations. A field that is empty selects everything; all other fields
// must match.
type OperationQuery struct {
	Accounts []vedette.AccountName // nil for all; an empty list selects none
	Agent    vedette.AgentID
	State    vedette.OutcomeState
	Verb     vedette.Verb
	Origin   string
	Limit    int    // 1 to 5000; 0 means 500
	After    string // cursor of the previous page
}

var operationColumns = []columnSpec{{"id", "text"}, {"account", "text"}, {"agent", "text"}, {"server", "text"}, {"verb", "text"},
	{"dry_run", "smallint"}, {"target", "text"}, {"username", "text"},
	{"origin", "text"}, {"state", "text"}, {"status", "bigint"}, {"reason", "text"}, {"message", "text"}, {"accepted", "bigint"},
	{"due", "bigint"}, {"sent", "bigint"}, {"ended", "bigint"}, {"digest", "text"}}

const selectOperations = `SELECT id, account, agent, server, verb, dry_run, target, username, origin, state, status, reason, message, accepted, due, sent, ended, digest FROM operations`

var beginOperationStatement = insertStatement("operations", operationColumns, 1, "")

// operationEndColumns are the columns that the end of an operation sets. The state is last,
// because MySQL sets one column after the other and only a pending row may change.
var operationEndColumns = []string{"agent", "status", "reason", "message", "sent", "ended", "state"}

const wherePending = "operations.state = 'pending'"

func (o *OperationRow) values() []any {
	return []any{string(o.ID), sanitize(string(o.Account), maxShort), sanitize(string(o.Agent), maxShort),
		sanitize(string(o.Server), maxShort), sanitize(string(o.Verb), maxWord), int64(boolToInt(o.DryRun)),
		sanitize(o.Target, maxMessage), sanitize(o.User, maxShort), sanitize(o.Origin, maxShort), sanitize(string(o.State), maxWord),
		int64(o.Status),
		sanitize(o.Reason, maxShort), sanitize(o.Message, maxMessage), toMicros(o.Accepted), toMicros(o.Deadline), toMicros(o.Sent),
		toMicros(o.Ended), sanitize(o.Digest, maxShort)}
}

// BeginOperation stores an accepted operation as pending. The error is vedette.Conflict if one
// with its ID is stored already; the caller must not execute it again.
func (s *Store) BeginOperation(ctx context.Context, o OperationRow) error {
	action := fmt.Sprintf("record operation %.60s", o.ID)
	if err := checkID("operation", string(o.ID)); err != nil {
		return fmt.Errorf("%s: %w", action, err)
	}
	o.State = Pending
	_, err := s.execWrite(ctx, beginOperationStatement, o.values()...)
	if err != nil && s.dialect.isUniqueViolation(err) {
		err = vedette.Errorf(vedette.Conflict, "the operation %s was accepted before", o.ID)
	}
	return s.wrapError(action, err)
}

// EndOperations stores the outcomes of operations. Operations that were not begun are stored as a
// whole, because a read is recorded only when it has ended. An operation keeps its first outcome.
func (s *Store) EndOperations(ctx context.Context, operations []OperationRow) error {
	const action = "record the outcomes of operations"
	rows := make([][]any, 0, len(operations))
	seen := make(map[vedette.OperationID]bool, len(operations))
	for _, o := range slices.SortedFunc(slices.Values(operations), func(a, b OperationRow) int {
		return strings.Compare(string(a.ID), string(b.ID))
	}) {
		if err := checkID("operation", string(o.ID)); err != nil {
			return fmt.Errorf("%s: %w", action, err)
		}
		if !seen[o.ID] {
			seen[o.ID] = true
			rows = append(rows, o.values())
		}
	}
	if len(rows) == 0 {
		return nil
	}
	if len(rows) == 1 {
		_, err := s.execWrite(ctx, s.endStatement(), rows[0]...)
		return s.wrapError(action, err)
	}
	err := s.write(ctx, func(ctx context.Context, tx *transaction) error {
		return tx.dialect.insert(ctx, tx, "operations", operationColumns, rows, tx.dialect.onConflictUpdate(wherePending, operationEndColumns))
	})
	return s.wrapError(action, err)
}

// endValues returns what endStatement takes of an operation; nil of none.
func (s *Store) endValues(o *OperationRow) ([]any, error) {
	if o == nil {
		return nil, nil
	}
	return o.values(), checkID("operation", string(o.ID))
}

// endStatement stores the end of one operation.
func (s *Store) endStatement() string {
	return insertStatement("operations", operationColumns, 1, s.dialect.onConflictUpdate(wherePending, operationEndColumns))
}

// Operation returns one operation. The error is vedette.NotFound if it is not in the history, or
// no longer.
func (s *Store) Operation(ctx context.Context, id vedette.OperationID) (OperationRow, error) {
	var o OperationRow
	where, args := conditions{equals("id", string(id), maxID)}.where()
	err := s.queryOne(ctx, func(row scanner) (err error) {
		o, err = scanOperation(row)
		return err
	}, selectOperations+where, args...)
	if errors.Is(err, sql.ErrNoRows) {
		return o, NoOperation(id)
	}
	return o, s.wrapError(fmt.Sprintf("read operation %.60s", id), err)
}

// NoOperation is the error for an operation that is not in the history, or that the caller may not know of.
func NoOperation(id vedette.OperationID) error {
	return vedette.Errorf(vedette.NotFound, "the history has no operation %.60s: it was never accepted, or has been deleted since", id)
}

// Operations returns a page of the operations that a query selects, the newest first, and the
// cursor of the next page, which is empty on the last one. The error is vedette.Invalid if the
// limit or the cursor is invalid.
func (s *Store) Operations(ctx context.Context, q OperationQuery) ([]OperationRow, string, error) {
	if q.Limit == 0 {
		q.Limit = defaultLimit
	}
	if q.Limit < 0 || q.Limit > maxLimit {
		return nil, "", vedette.Errorf(vedette.Invalid, "the limit %d is not between 1 and %d", q.Limit, maxLimit)
	}
	if q.After != "" && checkID("operation", q.After) != nil {
		return nil, "", vedette.Errorf(vedette.Invalid, "the cursor %.100q is invalid: request the first page again, without a cursor", q.After)
	}
	operations := []OperationRow{}
	clause, args := q.conditions().where()
	err := s.queryEach(ctx, func(rows *sql.Rows) error {
		o, err := scanOperation(rows)
		operations = append(operations, o)
		return err
	}, fmt.Sprintf(`%s%s ORDER BY id DESC LIMIT %d`, selectOperations, clause, q.Limit+1), args...)
	if err != nil || len(operations) <= q.Limit {
		return operations, "", s.wrapError("read the operations", err)
	}
	operations = operations[:q.Limit]
	return operations, string(operations[q.Limit-1].ID), nil
}

func (q *OperationQuery) conditions() conditions {
	var where conditions
	if q.After != "" {
		where = append(where, condition{"id < ?", []any{q.After}})
	}
	for _, f := range []struct {
		column, value string
		maxBytes      int
	}{
		{"agent", string(q.Agent), maxShort}, {"state", string(q.State), maxWord}, {"verb", string(q.Verb), maxWord},
		{"origin", q.Origin, maxShort},
	} {
		if f.value != "" {
			where = append(where, equals(f.column, f.value, f.maxBytes))
		}
	}
	if q.Accounts == nil {
		return where
	}
	return append(where, isOneOf("account", q.Accounts, maxShort))
}

func scanOperation(row scanner) (OperationRow, error) {
	var o OperationRow
	var id, account, agent, server, verb, state string
	var accepted, due, sent, ended int64
	err := row.Scan(&id, &account, &agent, &server, &verb, &o.DryRun, &o.Target, &o.User, &o.Origin, &state, &o.Status, &o.Reason, &o.Message,
		&accepted, &due, &sent, &ended, &o.Digest)
	o.ID, o.Account, o.Agent, o.Server = vedette.OperationID(id), vedette.AccountName(account), vedette.AgentID(agent),
		vedette.ServerID(server)
	o.Verb, o.State = vedette.Verb(verb), vedette.OutcomeState(state)
	o.Accepted, o.Deadline, o.Sent, o.Ended = fromMicros(accepted), fromMicros(due), fromMicros(sent), fromMicros(ended)
	return o, err
}

// MarkOperationsLost ends a server's pending operations as lost, and returns their number. A
// server calls it when it starts, for the operations that it had accepted before: nobody waits for
// them any more.
func (s *Store) MarkOperationsLost(ctx context.Context, server vedette.ServerID, message string, at time.Time) (int, error) {
	n, err := s.endAsLost(ctx, message, at, `server = ?`, sanitize(string(server), maxShort))
	return n, s.wrapError("end the pending operations of server "+string(server), err)
}

// ExpireOperations ends pending operations of any server as lost if their deadline was before a
// time, and returns their number. Their server has stopped and not started again under its name.
func (s *Store) ExpireOperations(ctx context.Context, deadlineBefore time.Time, message string, at time.Time) (int, error) {
	n, err := s.endAsLost(ctx, message, at, `due < ?`, toMicros(deadlineBefore))
	return n, s.wrapError("end overdue operations", err)
}

func (s *Store) endAsLost(ctx context.Context, message string, at time.Time, where string, arg any) (int, error) {
	n, err := s.execWrite(ctx, `UPDATE operations SET state = ?, status = 504, reason = 'Lost', message = ?, ended = ? WHERE state = 'pending' AND `+where,
		string(vedette.Lost), sanitize(message, maxMessage), toMicros(at), arg)
	return int(n), err
}

// PurgeOperations deletes at most limit of the operations that were accepted before a time, the
// oldest first, and returns their number.
func (s *Store) PurgeOperations(ctx context.Context, before time.Time, limit int) (int, error) {
	n, err := s.purge(ctx, "operations", `accepted < ?`, "accepted", limit, toMicros(before))
	return n, s.wrapError("purge the history of operations", err)
}

// purge deletes the first rows of a table that has an id column.
func (s *Store) purge(ctx context.Context, table, where, order string, limit int, args ...any) (int, error) {
	var n int64
	err := s.writeLowPriority(ctx, func(ctx context.Context, tx *transaction) (err error) {
		n, err = tx.exec(ctx, fmt.Sprintf(tx.dialect.purgeStatement, table, where, order, max(0, limit)), args...)
		return err
	})
	return int(n), err
}
