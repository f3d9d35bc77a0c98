package store

import (
	"context"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
)

// AttributesOf returns those of the named objects that exist. There must be at most a few hundred.
func (s *Store) AttributesOf(ctx context.Context, objects []ObjectRef) ([]AttributesRow, error) {
	const action = "read the attributes of objects"
	names, err := s.accountNames(ctx)
	if err != nil {
		return nil, s.wrapError(action, err)
	}
	where, err := s.anyObject(ctx, names, objects)
	if err != nil || where.sql == "" {
		return nil, s.wrapError(action, err)
	}
	return s.readAttributes(ctx, action, attributesQuery{tables: "objects o" + s.dialect.keyHint, where: conditions{where},
		labels: !slices.ContainsFunc(objects, func(o ObjectRef) bool { return !onlyPods([]vedette.Kind{o.Kind}) })})
}

// NamespaceRef names a namespace of an account. The name is empty for objects without a namespace.
type NamespaceRef struct {
	Account vedette.AccountName
	Name    string
}

// NamespaceAttributes returns the objects of a kind in any of a few hundred namespaces.
func (s *Store) NamespaceAttributes(ctx context.Context, namespaces []NamespaceRef, kind vedette.Kind) ([]AttributesRow, error) {
	const action = "read the attributes of a kind in namespaces"
	names, err := s.accountNames(ctx)
	if err != nil {
		return nil, s.wrapError(action, err)
	}
	kindID, known, err := s.kinds.lookupID(ctx, s, kind)
	if err != nil || !known {
		return nil, s.wrapError(action, err)
	}
	var parts conditions
	for id, list := range names.namespacesByID(namespaces) {
		parts = append(parts, condition{"o.account_id = ? AND o.kind_id = ? AND o.namespace IN (?" + strings.Repeat(",?", len(list)-1) + ")",
			append([]any{id, kindID}, list...)})
	}
	if len(parts) == 0 {
		return nil, nil
	}
	return s.readAttributes(ctx, action, attributesQuery{tables: "objects o" + s.dialect.keyHint, where: conditions{anyOf(parts...)},
		labels: onlyPods([]vedette.Kind{kind})})
}

// objectGroup is where objects of one kind are.
type objectGroup struct {
	accountID, kindID int64
	namespace         string
}

// anyObject returns the condition for any of the objects, or an empty one if none can exist. It names
// each namespace once, because PostgreSQL takes longer to plan many alternatives than to read them.
func (s *Store) anyObject(ctx context.Context, accounts *accountNames, objects []ObjectRef) (condition, error) {
	ids := accounts.idsOf(objects)
	names := map[objectGroup][]any{}
	for _, o := range objects {
		kindID, known, err := s.kinds.lookupID(ctx, s, o.Kind)
		if err != nil {
			return condition{}, err
		}
		if accountID := ids[o.Account]; accountID != 0 && known && isValidText(o.Namespace, maxName) && isValidText(o.Name, maxName) {
			group := objectGroup{accountID, kindID, o.Namespace}
			names[group] = append(names[group], o.Name)
		}
	}
	if len(names) == 0 {
		return condition{}, nil
	}
	var parts conditions
	for group, list := range names {
		parts = append(parts, condition{"o.account_id = ? AND o.kind_id = ? AND o.namespace = ? AND o.name IN (?" + strings.Repeat(",?", len(list)-1) + ")",
			append([]any{group.accountID, group.kindID, group.namespace}, list...)})
	}
	return anyOf(parts...), nil
}
