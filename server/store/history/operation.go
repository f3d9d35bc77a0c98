package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// History keeps operations and how they ended. Its methods may be called concurrently.
type History struct {
	db           *sqldb.DB
	cost         historyCost
	endStatement sqldb.Statement // stores the end of one operation
	// unindexed is a prefix of a column that keeps a planner without statistics from choosing its index; empty if the planner
	// has statistics.
	unindexed string
}

// New returns the history of a database.
func New(db *sqldb.DB) *History {
	h := &History{db: db, cost: historyCosts[db.Dialect.Name],
		endStatement: sqldb.InsertStatement("operations", operationColumns, 1, db.Dialect.OnConflictUpdate(wherePending, operationEndColumns))}
	if db.Dialect.Name == sqldb.SQLite {
		h.unindexed = "+"
	}
	return h
}

// Prepare prepares what runs in each operation: SQLite takes as long to parse it as to execute it. What begins an operation
// precedes an effect in a cluster: after a power failure no id may be accepted again.
func (h *History) Prepare(ctx context.Context) error {
	if h.db.Dialect.Name != sqldb.SQLite {
		return nil
	}
	return errors.Join(h.db.Prepare(ctx, sqldb.WritePool, h.endStatement),
		h.db.Prepare(ctx, sqldb.DurablePool, beginOperationStatement))
}

// Pending is the state of an operation that has no outcome yet.
const Pending vedette.OutcomeState = "pending"

// Operation is an operation in the history. It names what the operation changed but has no
// manifest, because that may contain Secrets.
type Operation struct {
	ID        vedette.OperationID
	Account   vedette.AccountName
	Agent     vedette.AgentID  // that executed it; empty if it was not sent to an agent
	Server    vedette.ServerID // that accepted it
	Verb      vedette.Verb
	DryRun    bool   // it was validated and changed nothing
	Target    string // for users: "Deployment shop/web"
	Requester vedette.Requester
	Origin    string
	State     vedette.OutcomeState // Pending until it has ended
	Status    int
	Reason    string
	Message   string // truncated to 4096 bytes
	Digest    string // see vedette.Operation

	// Kind, Namespace and Name are of the object: as the request names it, and as the cluster does when the operation has
	// ended. They are empty if it has none.
	Kind, Namespace, Name string
	// Objects are those of an operation that changed several. They are written and selected by, and not read.
	Objects []vedette.Key
	// Changes are what it changed. Only Operation reads them.
	Changes []vedette.ObjectChange
	// Undoes is the operation whose change this one took back; empty if it is no undo, or if that change was not made here.
	Undoes vedette.OperationID

	// By the clock of the server that accepted it, to the microsecond; zero if it has not
	// happened yet.
	Accepted, Sent, Ended time.Time
	Deadline              time.Time
}

var operationColumns = sqldb.Columns("id text", "account text", "agent text", "server text", "verb text", "dry_run smallint",
	"target text", "username text", "origin text", "state text", "status bigint", "reason text", "message text", "accepted bigint",
	"due bigint", "sent bigint", "ended bigint", "digest text", "claimed text", "proven text", "service text", "address text",
	"kind text", "namespace text", "name text", "undoes text", "bytes bigint")

const selectOperations = `SELECT id, account, agent, server, verb, dry_run, target, username, origin, state, status, reason, message, accepted, due, sent, ended, digest,
	claimed, proven, service, address, kind, namespace, name, undoes FROM operations`

var beginOperationStatement = sqldb.InsertStatement("operations", operationColumns, 1, "")

// operationEndColumns are the columns that the end of an operation sets. The state is last,
// because MySQL sets one column after the other and only a pending row may change.
var operationEndColumns = []string{"agent", "status", "reason", "message", "sent", "ended", "kind", "namespace", "name", "undoes",
	"bytes", "state"}

const wherePending = "operations.state = 'pending'"

func (o *Operation) values(cost historyCost) []any {
	q := &o.Requester
	return []any{string(o.ID), sqldb.Sanitize(string(o.Account), sqldb.MaxShort), sqldb.Sanitize(string(o.Agent), sqldb.MaxShort),
		sqldb.Sanitize(string(o.Server), sqldb.MaxShort), sqldb.Sanitize(string(o.Verb), sqldb.MaxWord), int64(sqldb.BoolToInt(o.DryRun)),
		sqldb.Sanitize(o.Target, sqldb.MaxMessage), sqldb.Sanitize(q.User, sqldb.MaxShort), sqldb.Sanitize(o.Origin,
			sqldb.MaxShort), sqldb.Sanitize(string(o.State), sqldb.MaxWord),
		int64(o.Status),
		sqldb.Sanitize(o.Reason, sqldb.MaxShort), sqldb.Sanitize(o.Message,
			sqldb.MaxMessage), sqldb.ToMicros(o.Accepted), sqldb.ToMicros(o.Deadline), sqldb.ToMicros(o.Sent),
		sqldb.ToMicros(o.Ended), sqldb.Sanitize(o.Digest, sqldb.MaxShort), sqldb.Sanitize(q.Claimed, maxProof), sqldb.Sanitize(q.Proven,
			maxProof),
		sqldb.Sanitize(q.Service, sqldb.MaxShort), sqldb.Sanitize(q.Address, sqldb.MaxShort), sqldb.Sanitize(o.Kind,
			sqldb.MaxCluster), sqldb.Sanitize(o.Namespace, sqldb.MaxShort),
		sqldb.Sanitize(o.Name, sqldb.MaxName), sqldb.Sanitize(string(o.Undoes), sqldb.MaxID), cost.of(o)}
}

// maxProof is the length of what was proven or claimed: the subject of a certificate.
const maxProof = 1024

// BeginOperation stores an accepted operation as pending. The error is vedette.Conflict if one
// with its ID is stored already; the caller must not execute it again.
func (h *History) BeginOperation(ctx context.Context, o Operation) error {
	action := fmt.Sprintf("record operation %.60s", o.ID)
	if err := sqldb.CheckID("operation", string(o.ID)); err != nil {
		return fmt.Errorf("%s: %w", action, err)
	}
	o.State = Pending
	_, err := h.db.ExecWrite(ctx, beginOperationStatement, o.values(h.cost)...)
	if err != nil && h.db.Dialect.IsUniqueViolation(err) {
		err = vedette.Errorf(vedette.Conflict, "the operation %s was accepted before", o.ID)
	}
	return h.db.WrapError(action, err)
}

// EndOperations stores the outcomes of operations. Operations that were not begun are stored as a
// whole, because a read is recorded only when it has ended. An operation keeps its first outcome.
func (h *History) EndOperations(ctx context.Context, operations []Operation) error {
	const action = "record the outcomes of operations"
	ends := slices.Clone(operations)
	slices.SortStableFunc(ends, func(a, b Operation) int { return strings.Compare(string(a.ID), string(b.ID)) })
	ends = slices.CompactFunc(ends, func(a, b Operation) bool { return a.ID == b.ID })
	rows := make([][]any, len(ends))
	for i := range ends {
		if err := sqldb.CheckID("operation", string(ends[i].ID)); err != nil {
			return fmt.Errorf("%s: %w", action, err)
		}
		rows[i] = ends[i].values(h.cost)
	}
	if len(rows) == 0 {
		return nil
	}
	if len(rows) == 1 && !ends[0].hasDetails() {
		_, err := h.db.ExecWrite(ctx, h.endStatement, rows[0]...)
		return h.db.WrapError(action, err)
	}
	err := h.db.Write(ctx, func(ctx context.Context, tx *sqldb.Tx) error {
		if err := tx.Insert(ctx, "operations", operationColumns, rows,
			tx.Dialect.OnConflictUpdate(wherePending, operationEndColumns)); err != nil {
			return err
		}
		return insertDetails(ctx, tx, ends)
	})
	return h.db.WrapError(action, err)
}

// hasDetails reports whether an operation has rows in other tables.
func (o *Operation) hasDetails() bool { return len(o.Changes) > 0 || len(o.Objects) > 0 }

var (
	operationChangesColumns = sqldb.Columns("id text", "body text")
	operationObjectsColumns = sqldb.Columns("id text", "kind text", "namespace text", "name text")
)

// insertDetails stores what operations changed, which are in the order of their ids. The changes that are stored first stay, as
// the outcome does.
func insertDetails(ctx context.Context, tx *sqldb.Tx, operations []Operation) error {
	var changes, objects [][]any
	for i := range operations {
		o := &operations[i]
		if len(o.Changes) > 0 {
			body, err := encodeChanges(o.Changes)
			if err != nil {
				return err
			}
			changes = append(changes, []any{string(o.ID), body})
		}
		for _, key := range distinct(o.Objects) {
			objects = append(objects, []any{string(o.ID), sqldb.Sanitize(key.Kind.String(), sqldb.MaxCluster), sqldb.Sanitize(key.Namespace,
				sqldb.MaxShort),
				sqldb.Sanitize(key.Name, sqldb.MaxName)})
		}
		if len(o.Objects) > 0 {
			if _, err := tx.Exec(ctx, sqldb.Named("delete the objects of an operation", `DELETE FROM operation_objects WHERE id = ?`), string(o.ID)); err != nil {
				return err
			}
		}
	}
	if len(changes) > 0 {
		if err := tx.Insert(ctx, "operation_changes", operationChangesColumns, changes,
			tx.Dialect.OnConflictUpdate("1 = 0", []string{"body"})); err != nil {
			return err
		}
	}
	if len(objects) == 0 {
		return nil
	}
	return tx.Insert(ctx, "operation_objects", operationObjectsColumns, objects, "")
}

// distinct returns the keys that differ as they are stored.
func distinct(keys []vedette.Key) []vedette.Key {
	seen := map[vedette.Key]bool{}
	var all []vedette.Key
	for _, key := range keys {
		stored := vedette.Key{Kind: vedette.Kind{Name: sqldb.Sanitize(key.Kind.String(), sqldb.MaxCluster)},
			Namespace: sqldb.Sanitize(key.Namespace, sqldb.MaxShort),
			Name:      sqldb.Sanitize(key.Name, sqldb.MaxName)}
		if !seen[stored] {
			seen[stored] = true
			all = append(all, key)
		}
	}
	return all
}

// changeJSON is a vedette.ObjectChange as it is stored.
type changeJSON struct {
	Kind           string          `json:"kind"`
	Group          string          `json:"group,omitempty"`
	Namespace      string          `json:"namespace,omitempty"`
	Name           string          `json:"name"`
	Before         string          `json:"before,omitempty"`
	After          string          `json:"after,omitempty"`
	Patch          json.RawMessage `json:"patch,omitempty"`
	TemplateBefore string          `json:"templateBefore,omitempty"`
	TemplateAfter  string          `json:"templateAfter,omitempty"`
	Note           string          `json:"note,omitempty"`
}

func encodeChanges(changes []vedette.ObjectChange) (string, error) {
	all := make([]changeJSON, len(changes))
	for i, c := range changes {
		all[i] = changeJSON{c.Key.Kind.Name, c.Key.Kind.Group, c.Key.Namespace, c.Key.Name, c.Before, c.After, c.Patch,
			c.TemplateBefore, c.TemplateAfter, c.Note}
	}
	var raw strings.Builder
	encoder := json.NewEncoder(&raw)
	encoder.SetEscapeHTML(false) // it takes six bytes for one
	if err := encoder.Encode(all); err != nil {
		return "", sqldb.DataErrorf("what an operation changed cannot be stored: %w", err)
	}
	return strings.ToValidUTF8(strings.TrimSuffix(raw.String(), "\n"), "\uFFFD"), nil
}

func decodeChanges(body string) ([]vedette.ObjectChange, error) {
	var all []changeJSON
	if err := json.Unmarshal([]byte(body), &all); err != nil {
		return nil, fmt.Errorf("decode what the operation changed: %w", err)
	}
	changes := make([]vedette.ObjectChange, len(all))
	for i, c := range all {
		changes[i] = vedette.ObjectChange{
			Key:    vedette.Key{Kind: vedette.Kind{Group: c.Group, Name: c.Kind}, Namespace: c.Namespace, Name: c.Name},
			Before: c.Before, After: c.After, Patch: c.Patch, TemplateBefore: c.TemplateBefore, TemplateAfter: c.TemplateAfter, Note: c.Note}
	}
	return changes, nil
}

// End stores the end of an operation in a transaction that does more.
func (h *History) End(ctx context.Context, tx *sqldb.Tx, o *Operation) error {
	if _, err := tx.Exec(ctx, h.endStatement, o.values(h.cost)...); err != nil {
		return err
	}
	return insertDetails(ctx, tx, []Operation{*o})
}

// MoveOperation makes another server the one that waits for a pending operation, with a new deadline, and reports whether it did: the
// operation may have ended, or been moved by another server.
func (h *History) MoveOperation(ctx context.Context, id vedette.OperationID, from, to vedette.ServerID, deadline time.Time) (bool, error) {
	n, err := h.db.ExecWrite(ctx, sqldb.Named("move an operation to another server", `UPDATE operations SET server = ?, due = ?
		WHERE id = ? AND server = ? AND state = 'pending'`), sqldb.Sanitize(string(to), sqldb.MaxShort), sqldb.ToMicros(deadline),
		sqldb.Sanitize(string(id), sqldb.MaxID), sqldb.Sanitize(string(from), sqldb.MaxShort))
	return n > 0, h.db.WrapError(fmt.Sprintf("move operation %.60s to server %s", id, to), err)
}

// MarkOperationsLost ends a server's pending operations as lost, and returns their number. A
// server calls it when it starts, for the operations that it had accepted before: nobody waits for
// them any more.
func (h *History) MarkOperationsLost(ctx context.Context, server vedette.ServerID, message string, at time.Time) (int, error) {
	n, err := h.endAsLost(ctx, message, at, `server = ?`, sqldb.Sanitize(string(server), sqldb.MaxShort))
	return n, h.db.WrapError("end the pending operations of server "+string(server), err)
}

// ExpireOperations ends pending operations of any server as lost if their deadline was before a
// time, and returns their number. Their server has stopped and not started again under its name.
func (h *History) ExpireOperations(ctx context.Context, deadlineBefore time.Time, message string, at time.Time) (int, error) {
	n, err := h.endAsLost(ctx, message, at, `due < ?`, sqldb.ToMicros(deadlineBefore))
	return n, h.db.WrapError("end overdue operations", err)
}

func (h *History) endAsLost(ctx context.Context, message string, at time.Time, where string, arg any) (int, error) {
	n, err := h.db.ExecWrite(ctx, sqldb.Named("end operations as lost", `UPDATE operations SET state = ?, status = 504, reason = 'Lost', message = ?, ended = ? WHERE state = 'pending' AND `+where),
		string(vedette.Lost), sqldb.Sanitize(message, sqldb.MaxMessage), sqldb.ToMicros(at), arg)
	return int(n), err
}
