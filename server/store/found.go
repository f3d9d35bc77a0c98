package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/vedette-io/vedette"
)

// foundRow is a row as it was read, its columns still compressed.
type foundRow struct {
	rowKey
	accountID  int64
	account    string
	resource   vedette.Kind
	labelset   int64
	labels     sql.RawBytes
	set        map[string]string
	stored     int64
	uid        []byte
	version    string
	head, body []byte
}

func (f *foundRow) position() position {
	return position{account: f.account, kind: f.resource, namespace: f.namespace, name: f.name}
}

// choice says what to read of objects o, accounts a and kinds k.
type choice struct {
	where  conditions
	order  string
	limit  int
	bodies bool
	tables string
	room   *room // for the columns, compressed
}

// find returns what was chosen, as far as there is room for it.
func (s *Store) find(ctx context.Context, sel choice) ([]foundRow, error) {
	body := "NULL"
	if sel.bodies {
		body = "o.body"
	}
	clause, args := sel.where.where()
	var found []foundRow
	sets := map[int64]map[string]string{} // those of one workload share theirs
	err := s.each(ctx, func(rows *sql.Rows) error {
		var f foundRow
		if err := rows.Scan(&f.accountID, &f.account, &f.kind, &f.resource.Name, &f.resource.Group, &f.namespace, &f.name,
			&f.labelset, &f.labels, &f.stored, &f.uid, &f.version, &f.head, &f.body); err != nil {
			return err
		}
		if !sel.room.take(len(f.head) + len(f.body)) {
			return errFull
		}
		if err := f.readLabels(sets); err != nil {
			return err
		}
		found = append(found, f)
		return nil
	}, fmt.Sprintf(`SELECT a.id, a.name, k.id, k.name, k.grp, o.namespace, o.name, o.labelset, l.labels, o.stored, o.uid, o.version, o.head, %s
		FROM %s LEFT JOIN labelsets l ON l.id = o.labelset%s
		ORDER BY %s LIMIT %d`, body, sel.tables, clause, sel.order, sel.limit), args...)
	if errors.Is(err, errFull) {
		err = nil
	}
	return found, err
}

// byIndex joins objects, to which an index of theirs leads, with the names of their
// accounts and kinds.
func (s *Store) byIndex() string { return named("objects o", s.dialect.inOrder) }

// byKey is the same where the objects are those of one account and kind, in the order
// of their key.
func (s *Store) byKey() string { return named("objects o"+s.dialect.byKey, s.dialect.inOrder) }

// byScope is the same where accounts and kinds tell the objects.
func (s *Store) byScope() string { return named("objects o"+s.dialect.byKey, "JOIN") }

func named(objects, join string) string {
	return objects + " " + join + " accounts a ON a.id = o.account_id " + join + " kinds k ON k.id = o.kind_id"
}

func (f *foundRow) readLabels(sets map[int64]map[string]string) error {
	defer func() { f.labels = nil }() // it is the driver's memory
	if set, ok := sets[f.labelset]; ok || f.labelset == 0 {
		f.set = set
		return nil
	}
	if f.labels == nil {
		return fmt.Errorf("label set %d of %s/%s is missing", f.labelset, f.namespace, f.name)
	}
	if err := json.Unmarshal(f.labels, &f.set); err != nil {
		return fmt.Errorf("read label set %d: %w", f.labelset, err)
	}
	sets[f.labelset] = f.set
	return nil
}

// unpack makes objects of rows, as far as there is room for them. What it has
// unpacked it lets go of.
func (s *Store) unpack(ctx context.Context, found []foundRow, room *room) ([]Row, error) {
	resources, err := s.resourcesOf(ctx, found)
	if err != nil {
		return nil, err
	}
	rows := make([]Row, 0, len(found))
	var buf []byte
	for i := range found {
		f, r := &found[i], Row{}
		size := 0
		if buf, size, err = s.unpackRow(ctx, f, &r, buf); err != nil {
			return nil, err
		}
		if !room.take(size) {
			break
		}
		r.Resource = resources.of(f)
		rows = append(rows, r)
		f.head, f.body = nil, nil
	}
	return rows, nil
}

// unpackRow makes an object of a row, and returns how many bytes its columns have.
// It may use buf, which it returns for the next row.
func (s *Store) unpackRow(ctx context.Context, f *foundRow, r *Row, buf []byte) ([]byte, int, error) {
	r.Account, r.Key = vedette.AccountName(f.account), vedette.Key{Kind: f.resource, Namespace: f.namespace, Name: f.name}
	r.UID, r.ResourceVersion, r.Labels, r.Stored = unpackUID(f.uid), f.version, f.set, timeOf(f.stored)
	buf, err := s.dicts.expand(ctx, s, buf[:0], f.head)
	if err == nil {
		err = parseHead(buf, &r.Object)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read %s of account %s: %w", r.Key, r.Account, err)
	}
	size := len(buf)
	if buf, err = s.dicts.expand(ctx, s, buf[:0], f.body); err == nil {
		r.Body, err = unfold(bytes.Clone(buf), &r.Object)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read the body of %s of account %s: %w", r.Key, r.Account, err)
	}
	r.Moniker = vedette.MonikerOf(r.Key, r.Annotations)
	return buf, size + len(r.Body), nil
}

type resourceKey struct {
	account int64
	feedKey
}

type resourceTable map[resourceKey]vedette.Resource

func (t resourceTable) of(f *foundRow) vedette.Resource {
	if r, ok := t[resourceKey{f.accountID, feedKey{f.kind, f.namespace}}]; ok {
		return r
	}
	return t[resourceKey{f.accountID, feedKey{f.kind, ""}}]
}

func (s *Store) resourcesOf(ctx context.Context, found []foundRow) (resourceTable, error) {
	table := resourceTable{}
	if len(found) == 0 {
		return table, nil
	}
	accounts, kinds := map[int64]bool{}, map[int64]bool{}
	for i := range found {
		accounts[found[i].accountID], kinds[found[i].kind] = true, true
	}
	where, args := conditions{s.dialect.in("f.account_id", numbers(accounts)), s.dialect.in("f.kind_id", numbers(kinds))}.where()
	err := s.each(ctx, func(rows *sql.Rows) error {
		var at resourceKey
		var short string
		var r vedette.Resource
		if err := rows.Scan(&at.account, &at.kind, &at.namespace, &r.Kind.Name, &r.Kind.Group, &r.Version, &r.Plural, &r.Singular, &short, &r.Namespaced); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(short), &r.ShortNames); err != nil {
			return err
		}
		table[at] = r
		return nil
	}, `SELECT f.account_id, f.kind_id, f.namespace, k.name, k.grp, f.version, f.plural, f.singular, f.short_names, f.namespaced
		FROM feeds f JOIN kinds k ON k.id = f.kind_id`+where, args...)
	if err != nil {
		return nil, fmt.Errorf("read resources: %w", err)
	}
	return table, nil
}

func numbers(set map[int64]bool) []int64 {
	ids := make([]int64, 0, len(set))
	for id := range set {
		ids = append(ids, id)
	}
	return ids
}
