package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/attributes"
	"github.com/vedette-io/vedette/server/store/codec"
)

// Each method in this file takes one statement, and one more if it finds Pods, for their labels.
// Rows of removed and retired accounts are never returned. Rows are in no order.

// ApplicationAttributes returns the objects of an application, of the given kinds or of all kinds.
func (s *Store) ApplicationAttributes(ctx context.Context, application string, kinds []vedette.Kind) ([]AttributesRow, error) {
	where, err := s.kindConditions(ctx, "o.kind_id", kinds)
	if err == nil {
		where = append(where, condition{"o.application = ?", []any{sanitize(application, maxApplication)}})
	}
	return s.attributeRows(ctx, "read the attributes of application "+application, err, "objects o", s.dialect.orderedJoin, where)
}

// OwnedAttributes returns the objects of kinds that are owned by an object of an application which
// has one of the owner kinds. They may belong to another application.
func (s *Store) OwnedAttributes(ctx context.Context, application string, owners, kinds []vedette.Kind) ([]AttributesRow, error) {
	ownerKinds, err := s.kindConditions(ctx, "p.kind_id", owners)
	ownedKinds, otherErr := s.kindConditions(ctx, "o.kind_id", kinds)
	where := slices.Concat(ownerKinds, ownedKinds, conditions{{"p.application = ?", []any{sanitize(application, maxApplication)}},
		s.hasOwner()})
	join := s.dialect.orderedJoin
	return s.attributeRows(ctx, "read what objects of application "+application+" own", errors.Join(err, otherErr),
		"objects p "+join+" objects o ON o.owner = p.uid AND o.account_id = p.account_id", join, where)
}

// NeighborAttributes returns the objects of kinds in those namespaces of accounts in which an
// application has objects of the kinds in of.
func (s *Store) NeighborAttributes(ctx context.Context, application string, of, kinds []vedette.Kind) ([]AttributesRow, error) {
	ofKinds, err := s.kindConditions(ctx, "p.kind_id", of)
	where, otherErr := s.kindConditions(ctx, "o.kind_id", kinds)
	clause, args := append(ofKinds, condition{"p.application = ?", []any{sanitize(application, maxApplication)}}).where()
	from := "(SELECT DISTINCT p.account_id, p.namespace FROM objects p" + clause + ") n " + s.dialect.orderedJoin +
		" objects o ON o.account_id = n.account_id AND o.namespace = n.namespace"
	return s.attributeRows(ctx, "read the neighbors of application "+application, errors.Join(err, otherErr), from, s.dialect.orderedJoin,
		where, args...)
}

// AttributesOwnedBy returns the objects of kinds that one of thousands of objects owns.
func (s *Store) AttributesOwnedBy(ctx context.Context, owners []OwnerRef, kinds []vedette.Kind) ([]AttributesRow, error) {
	const action = "read the attributes of owned objects"
	kindWhere, err := s.kindConditions(ctx, "o.kind_id", kinds)
	if err != nil {
		return nil, s.wrapError(action, err)
	}
	wanted := make(map[OwnerRef]bool, len(owners))
	uids := make(map[string]bool, len(owners)) // packed
	for _, o := range owners {
		if o.UID != "" {
			wanted[o] = true
			uids[string(codec.PackUID(o.UID))] = true
		}
	}
	var found []AttributesRow
	for chunk := range slices.Chunk(slices.Sorted(maps.Keys(uids)), maxOwnersPerStatement) {
		packed := make([][]byte, len(chunk))
		for i, uid := range chunk {
			packed[i] = []byte(uid)
		}
		rows, err := s.attributeRows(ctx, action, nil, "objects o", s.dialect.orderedJoin,
			slices.Concat(kindWhere, conditions{s.dialect.inBytes("o.owner", packed), s.hasOwner()}))
		if err != nil {
			return nil, err
		}
		found = append(found, rows...)
	}
	// Two accounts of the same cluster have the same uids.
	return slices.DeleteFunc(found, func(r AttributesRow) bool { return !wanted[OwnerRef{r.Account, r.Owner.UID}] }), nil
}

// maxOwnersPerStatement is within what SQLite allows as parameters.
const maxOwnersPerStatement = 30_000

// KindAttributes returns the objects that a query selects. The caller must bound their number.
func (s *Store) KindAttributes(ctx context.Context, q AttributesQuery) ([]AttributesRow, error) {
	where, err := s.kindConditions(ctx, "o.kind_id", q.Kinds)
	for column, value := range map[string]string{"o.namespace": q.Namespace, "o.name": q.Name} {
		if value != "" {
			where = append(where, condition{column + " = ?", []any{sanitize(value, maxName)}})
		}
	}
	where = append(where, accountsNamed(q.Accounts))
	return s.attributeRows(ctx, "read the attributes of kinds", err, "objects o"+s.dialect.keyHint, "JOIN", where)
}

// hasOwner lets the planner use the index on owners, which lacks objects without one.
func (s *Store) hasOwner() condition { return condition{"o.owner <> " + s.dialect.emptyBytes, nil} }

// kindConditions returns the condition that a column has one of the kinds; none means all kinds.
func (s *Store) kindConditions(ctx context.Context, column string, kinds []vedette.Kind) (conditions, error) {
	if len(kinds) == 0 {
		return nil, nil
	}
	ids, err := s.kinds.lookupIDs(ctx, s, kinds)
	if err != nil {
		return nil, err
	}
	return conditions{s.dialect.in(column, ids)}, nil
}

const attributeColumns = `o.account_id, a.name, o.kind_id, o.namespace, o.name, o.uid, o.application, o.owner, o.labelset, o.attributes`

// attributeRows reads the attributes of the rows o of tables. The arguments of the tables precede
// those of the conditions. It returns err at once if that is not nil, so that callers need not.
func (s *Store) attributeRows(ctx context.Context, action string, err error, tables, join string, where conditions,
	args ...any) ([]AttributesRow, error) {
	if err != nil {
		return nil, s.wrapError(action, err)
	}
	clause, whereArgs := append(where, condition{"a.name IS NOT NULL", nil}).where()
	rows, err := s.scanAttributes(ctx, `SELECT `+attributeColumns+` FROM `+tables+` `+join+` accounts a ON a.id = o.account_id`+clause,
		append(args, whereArgs...)...)
	return rows, s.wrapError(action, err)
}

// attributeScanner turns rows of attributeColumns into AttributesRows.
type attributeScanner struct {
	store    *Store
	accounts map[int64]vedette.AccountName // so that rows share the text
	rows     []AttributesRow
	kinds    []int64 // of the rows
	labels   []int64 // label sets of the rows
}

func (s *Store) scanAttributes(ctx context.Context, query string, args ...any) ([]AttributesRow, error) {
	scanner := attributeScanner{store: s, accounts: map[int64]vedette.AccountName{}}
	if err := s.queryEach(ctx, scanner.scan, query, args...); err != nil {
		return nil, err
	}
	// Only now, because a kind that is not cached takes a statement of its own.
	for i, id := range scanner.kinds {
		kind, err := s.kinds.lookupKind(ctx, s, id)
		if err != nil {
			return nil, err
		}
		scanner.rows[i].Kind = kind
	}
	return scanner.rows, s.addPodLabels(ctx, scanner.rows, scanner.labels)
}

func (c *attributeScanner) scan(rows *sql.Rows) error {
	var accountID, kindID, labelset int64
	var account, uid, application, owner, encoded sql.RawBytes
	var r AttributesRow
	if err := rows.Scan(&accountID, &account, &kindID, &r.Namespace, &r.Name, &uid, &application, &owner, &labelset, &encoded); err != nil {
		return err
	}
	name, ok := c.accounts[accountID]
	if !ok {
		name = vedette.AccountName(account)
		c.accounts[accountID] = name
	}
	r.Account, r.UID, r.Moniker.App = name, codec.UnpackUID(uid), string(application)
	r.Owner.UID = codec.UnpackUID(owner)
	err := attributes.Decode(encoded, r.Name, &r.Attributes, &r.Moniker)
	if err != nil && !errors.Is(err, attributes.ErrUnknownVersion) {
		return fmt.Errorf("read %s/%s of account %s: %w", r.Namespace, r.Name, r.Account, err)
	}
	c.rows, c.kinds, c.labels = append(c.rows, r), append(c.kinds, kindID), append(c.labels, labelset)
	return nil
}

// accountsNamed is accountCondition for names that any caller may have made up. Names that no
// database can store belong to no account.
func accountsNamed(names []vedette.AccountName) condition {
	valid := make([]vedette.AccountName, 0, len(names))
	for _, name := range names {
		if isValidText(string(name), maxAccountName) {
			valid = append(valid, name)
		}
	}
	if len(valid) == 0 && len(names) > 0 {
		return condition{"1 = 0", nil}
	}
	where, args := accountCondition(valid)
	return condition{where, args}
}
