package store

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/codec"
)

// Each method in this file takes one statement, and one more if accounts have changed since the
// last call. If only Pods are asked for, it takes another one for their labels; otherwise Pods have
// no labels. Rows of removed and retired accounts are never returned. Rows are in no order.

// ApplicationAttributes returns the objects of an application, of the given kinds or of all kinds.
func (s *Store) ApplicationAttributes(ctx context.Context, application string, kinds []vedette.Kind) ([]AttributesRow, error) {
	const action = "read the attributes of an application"
	where, err := s.kindConditions(ctx, "o.kind_id", kinds)
	if err != nil {
		return nil, s.wrapError(action, err)
	}
	where = append(where, ofApplication("o", application))
	return s.readAttributes(ctx, action, attributesQuery{tables: "objects o", where: where, application: application,
		labels: onlyPods(kinds)})
}

// OwnedAttributes returns the objects of kinds that are owned by an object of an application which
// has one of the owner kinds. They may belong to another application.
func (s *Store) OwnedAttributes(ctx context.Context, application string, owners, kinds []vedette.Kind) ([]AttributesRow, error) {
	const action = "read what the objects of an application own"
	ownerKinds, err := s.kindConditions(ctx, "p.kind_id", owners)
	ownedKinds, otherErr := s.kindConditions(ctx, "o.kind_id", kinds)
	if err := errors.Join(err, otherErr); err != nil {
		return nil, s.wrapError(action, err)
	}
	return s.readAttributes(ctx, action, attributesQuery{
		tables: s.dialect.ownedTables,
		where:  slices.Concat(conditions{ofApplication("p", application), s.hasOwner()}, ownerKinds, ownedKinds), labels: onlyPods(kinds)})
}

// NeighborAttributes returns the objects of kinds that belong to other applications, in those
// namespaces of accounts in which an application has objects of the kinds in of.
func (s *Store) NeighborAttributes(ctx context.Context, application string, of, kinds []vedette.Kind) ([]AttributesRow, error) {
	const action = "read the neighbors of an application's objects"
	ofKinds, err := s.kindConditions(ctx, "p.kind_id", of)
	where, otherErr := s.kindConditions(ctx, "o.kind_id", kinds)
	if err := errors.Join(err, otherErr); err != nil {
		return nil, s.wrapError(action, err)
	}
	if !isValidText(application, maxApplication) {
		return nil, nil // no application has the name
	}
	where = append(where, condition{"o.application <> ?", []any{application}})
	clause, args := append(conditions{ofApplication("p", application)}, ofKinds...).where()
	return s.readAttributes(ctx, action, attributesQuery{tables: "(SELECT DISTINCT p.account_id, p.namespace FROM objects p" + clause + ") n " +
		s.dialect.orderedJoin + " objects o ON o.account_id = n.account_id AND o.namespace = n.namespace", args: args, where: where})
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
		rows, err := s.readAttributes(ctx, action, attributesQuery{tables: "objects o",
			where: slices.Concat(conditions{s.dialect.inBytes("o.owner", packed), s.hasOwner()}, kindWhere), labels: onlyPods(kinds)})
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
	const action = "read the attributes of kinds"
	where, err := s.kindConditions(ctx, "o.kind_id", q.Kinds)
	if err != nil {
		return nil, s.wrapError(action, err)
	}
	for column, value := range map[string]string{"o.namespace": q.Namespace, "o.name": q.Name} {
		if value != "" {
			where = append(where, equals(column, value, maxName))
		}
	}
	names, err := s.accountNames(ctx)
	if err != nil {
		return nil, s.wrapError(action, err)
	}
	// The index begins with the account, so the accounts are named even if they are all.
	where = append(where, s.dialect.in("o.account_id", names.ids(q.Accounts)))
	return s.readAttributes(ctx, action, attributesQuery{tables: "objects o" + s.dialect.keyHint, where: where, labels: onlyPods(q.Kinds)})
}

// ofApplication returns the condition that a table's objects belong to an application.
func ofApplication(table, application string) condition {
	return equals(table+".application", application, maxApplication)
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
