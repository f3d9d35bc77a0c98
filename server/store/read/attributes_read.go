package read

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/codec"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// Each method in this file takes one statement, and one more if accounts have changed since the
// last call. If only Pods are asked for, it takes another one for their labels; otherwise Pods have
// no labels. Rows of removed and retired accounts are never returned. Rows are in no order.

// ApplicationAttributes returns the objects of an application, of the given kinds or of all kinds.
func (r *Reader) ApplicationAttributes(ctx context.Context, application string, kinds []vedette.Kind) ([]AttributesRow, error) {
	const action = "read the attributes of an application"
	where, err := r.kindConditions(ctx, "o.kind_id", kinds)
	if err != nil {
		return nil, r.db.WrapError(action, err)
	}
	where = append(where, ofApplication("o", application))
	return r.readAttributes(ctx, action, attributesQuery{tables: "objects o", where: where, application: application,
		labels: onlyPods(kinds)})
}

// OwnedAttributes returns the objects of kinds that are owned by an object of an application which
// has one of the owner kinds. They may belong to another application.
func (r *Reader) OwnedAttributes(ctx context.Context, application string, owners, kinds []vedette.Kind) ([]AttributesRow, error) {
	const action = "read what the objects of an application own"
	ownerKinds, err := r.kindConditions(ctx, "p.kind_id", owners)
	ownedKinds, otherErr := r.kindConditions(ctx, "o.kind_id", kinds)
	if err := errors.Join(err, otherErr); err != nil {
		return nil, r.db.WrapError(action, err)
	}
	return r.readAttributes(ctx, action, attributesQuery{
		tables: r.dialect.ownedTables,
		where:  slices.Concat(sqldb.Conditions{ofApplication("p", application), r.hasOwner()}, ownerKinds, ownedKinds), labels: onlyPods(kinds)})
}

// NeighborAttributes returns the objects of kinds that belong to other applications, in those
// namespaces of accounts in which an application has objects of the kinds in of.
func (r *Reader) NeighborAttributes(ctx context.Context, application string, of, kinds []vedette.Kind) ([]AttributesRow, error) {
	const action = "read the neighbors of an application's objects"
	ofKinds, err := r.kindConditions(ctx, "p.kind_id", of)
	where, otherErr := r.kindConditions(ctx, "o.kind_id", kinds)
	if err := errors.Join(err, otherErr); err != nil {
		return nil, r.db.WrapError(action, err)
	}
	if !sqldb.IsValidText(application, sqldb.MaxApplication) {
		return nil, nil // no application has the name
	}
	where = append(where, sqldb.Cond("o.application <> ?", application))
	clause, args := append(sqldb.Conditions{ofApplication("p", application)}, ofKinds...).Where()
	return r.readAttributes(ctx, action, attributesQuery{tables: "(SELECT DISTINCT p.account_id, p.namespace FROM objects p" + clause + ") n " +
		r.dialect.orderedJoin + " objects o ON o.account_id = n.account_id AND o.namespace = n.namespace", args: args, where: where})
}

// AttributesOwnedBy returns the objects of kinds that one of thousands of objects owns.
func (r *Reader) AttributesOwnedBy(ctx context.Context, owners []OwnerRef, kinds []vedette.Kind) ([]AttributesRow, error) {
	const action = "read the attributes of owned objects"
	kindWhere, err := r.kindConditions(ctx, "o.kind_id", kinds)
	if err != nil {
		return nil, r.db.WrapError(action, err)
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
		rows, err := r.readAttributes(ctx, action, attributesQuery{tables: "objects o",
			where: slices.Concat(sqldb.Conditions{r.db.Dialect.InBytes("o.owner", packed), r.hasOwner()}, kindWhere), labels: onlyPods(kinds)})
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
func (r *Reader) KindAttributes(ctx context.Context, q AttributesQuery) ([]AttributesRow, error) {
	const action = "read the attributes of kinds"
	where, err := r.kindConditions(ctx, "o.kind_id", q.Kinds)
	if err != nil {
		return nil, r.db.WrapError(action, err)
	}
	for column, value := range map[string]string{"o.namespace": q.Namespace, "o.name": q.Name} {
		if value != "" {
			where = append(where, sqldb.Equals(column, value, sqldb.MaxName))
		}
	}
	names, err := r.names.Read(ctx)
	if err != nil {
		return nil, r.db.WrapError(action, err)
	}
	// The index begins with the account, so the accounts are named even if they are all.
	where = append(where, r.db.Dialect.In("o.account_id", names.Ids(q.Accounts)))
	return r.readAttributes(ctx, action, attributesQuery{tables: "objects o" + r.db.Dialect.KeyHint, where: where, labels: onlyPods(q.Kinds)})
}

// ofApplication returns the condition that a table's objects belong to an application.
func ofApplication(table, application string) sqldb.Condition {
	return sqldb.Equals(table+".application", application, sqldb.MaxApplication)
}

// hasOwner lets the planner use the index on owners, which lacks objects without one.
func (r *Reader) hasOwner() sqldb.Condition { return sqldb.Cond("o.owner <> " + r.dialect.emptyBytes) }

// kindConditions returns the condition that a column has one of the kinds; none means all kinds.
func (r *Reader) kindConditions(ctx context.Context, column string, kinds []vedette.Kind) (sqldb.Conditions, error) {
	if len(kinds) == 0 {
		return nil, nil
	}
	ids, err := r.kinds.LookupIDs(ctx, kinds)
	if err != nil {
		return nil, err
	}
	return sqldb.Conditions{r.db.Dialect.In(column, ids)}, nil
}
