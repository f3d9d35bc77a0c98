package read

import (
	"context"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/catalog"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// AttributesOf returns those of the named objects that exist. There must be at most a few hundred.
func (r *Reader) AttributesOf(ctx context.Context, objects []ObjectRef) ([]AttributesRow, error) {
	const action = "read the attributes of objects"
	names, err := r.names.Read(ctx)
	if err != nil {
		return nil, r.db.WrapError(action, err)
	}
	where, err := r.anyObject(ctx, names, objects)
	if err != nil || where.SQL == "" {
		return nil, r.db.WrapError(action, err)
	}
	return r.readAttributes(ctx, action, attributesQuery{tables: "objects o" + r.db.Dialect.KeyHint, where: sqldb.Conditions{where},
		labels: !slices.ContainsFunc(objects, func(o ObjectRef) bool { return !onlyPods([]vedette.Kind{o.Kind}) })})
}

// NamespaceRef names a namespace of an account. The name is empty for objects without a namespace.
type NamespaceRef struct {
	Account vedette.AccountName
	Name    string
}

// NamespaceAttributes returns the objects of a kind in any of a few hundred namespaces.
func (r *Reader) NamespaceAttributes(ctx context.Context, namespaces []NamespaceRef, kind vedette.Kind) ([]AttributesRow, error) {
	const action = "read the attributes of a kind in namespaces"
	names, err := r.names.Read(ctx)
	if err != nil {
		return nil, r.db.WrapError(action, err)
	}
	kindID, known, err := r.kinds.LookupID(ctx, kind)
	if err != nil || !known {
		return nil, r.db.WrapError(action, err)
	}
	var parts sqldb.Conditions
	for id, list := range namespacesByID(names, namespaces) {
		parts = append(parts, sqldb.Cond("o.account_id = ? AND o.kind_id = ? AND o.namespace IN (?"+strings.Repeat(",?", len(list)-1)+")",
			append([]any{id, kindID}, list...)...))
	}
	if len(parts) == 0 {
		return nil, nil
	}
	return r.readAttributes(ctx, action, attributesQuery{tables: "objects o" + r.db.Dialect.KeyHint, where: sqldb.Conditions{anyOf(parts...)},
		labels: onlyPods([]vedette.Kind{kind})})
}

// objectGroup is where objects of one kind are.
type objectGroup struct {
	accountID, kindID int64
	namespace         string
}

// anyObject returns the condition for any of the objects, or an empty one if none can exist. It names
// each namespace once, because PostgreSQL takes longer to plan many alternatives than to read them.
func (r *Reader) anyObject(ctx context.Context, accounts *catalog.AccountNames, objects []ObjectRef) (sqldb.Condition, error) {
	ids := idsOfAccounts(accounts, objects)
	names := map[objectGroup][]any{}
	for _, o := range objects {
		kindID, known, err := r.kinds.LookupID(ctx, o.Kind)
		if err != nil {
			return sqldb.Condition{}, err
		}
		if accountID := ids[o.Account]; accountID != 0 && known && sqldb.IsValidText(o.Namespace, sqldb.MaxName) && sqldb.IsValidText(o.Name,
			sqldb.MaxName) {
			group := objectGroup{accountID, kindID, o.Namespace}
			names[group] = append(names[group], o.Name)
		}
	}
	if len(names) == 0 {
		return sqldb.Condition{}, nil
	}
	var parts sqldb.Conditions
	for group, list := range names {
		parts = append(parts, sqldb.Cond("o.account_id = ? AND o.kind_id = ? AND o.namespace = ? AND o.name IN (?"+strings.Repeat(",?", len(list)-1)+")", append([]any{group.accountID, group.kindID, group.namespace}, list...)...))
	}
	return anyOf(parts...), nil
}

// idsOfAccounts returns the ids of those accounts of objects that are visible.
func idsOfAccounts(n *catalog.AccountNames, objects []ObjectRef) map[vedette.AccountName]int64 {
	wanted := map[vedette.AccountName]bool{}
	for i := range objects {
		wanted[objects[i].Account] = true
	}
	return n.IdsByName(wanted)
}

// namespacesByID returns the names of namespaces by the id of their account, without those of accounts
// that are not visible.
func namespacesByID(n *catalog.AccountNames, namespaces []NamespaceRef) map[int64][]any {
	wanted := map[vedette.AccountName]bool{}
	for _, namespace := range namespaces {
		wanted[namespace.Account] = true
	}
	ids, byID := n.IdsByName(wanted), map[int64][]any{}
	for _, namespace := range namespaces {
		if id, ok := ids[namespace.Account]; ok && sqldb.IsValidText(namespace.Name, sqldb.MaxName) {
			byID[id] = append(byID[id], namespace.Name)
		}
	}
	return byID
}
