package store

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/vedette-io/vedette"
)

// position is a place in the order of objects: that of the last one of a page.
type position struct {
	account   string
	kind      vedette.Kind
	namespace string
	name      string
}

// String writes a position as a cursor. Its form may change with any version:
// callers must not look into it.
func (p position) String() string {
	// Strings always marshal. What is no UTF-8 was never stored.
	text, _ := json.Marshal([]string{p.account, p.kind.Name, p.kind.Group, p.namespace, p.name})
	return base64.RawURLEncoding.EncodeToString(text)
}

func parseCursor(cursor string) (position, error) {
	var parts []string
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		err = json.Unmarshal(text, &parts)
	}
	if err != nil || len(parts) != 5 || strings.Contains(strings.Join(parts, ""), "\x00") {
		return position{}, vedette.Errorf(vedette.Invalid, "the cursor %.100q is none that this server gave out: begin again with the first page", cursor)
	}
	return position{account: parts[0], kind: vedette.Kind{Name: parts[1], Group: parts[2]}, namespace: parts[3], name: parts[4]}, nil
}

// compareAccountKind orders by account and kind alone.
func (p position) compareAccountKind(other position) int {
	return cmp.Or(cmp.Compare(p.account, other.account), cmp.Compare(p.kind.Name, other.kind.Name), cmp.Compare(p.kind.Group, other.kind.Group))
}

// after is the condition that a row of accounts a, kinds k and objects o stands
// behind the position. Databases do not search an index by (a, b) > (x, y)
// where the columns come from several tables, and MySQL never does.
func (p position) after() condition {
	return condition{`(a.name > ? OR a.name = ? AND (k.name > ? OR k.name = ? AND (k.grp > ? OR k.grp = ? AND (o.namespace > ? OR o.namespace = ? AND o.name > ?))))`,
		[]any{p.account, p.account, p.kind.Name, p.kind.Name, p.kind.Group, p.kind.Group, p.namespace, p.namespace, p.name}}
}

// afterAccountKind is the same for accounts and kinds alone.
func (p position) afterAccountKind() condition {
	return condition{`(a.name > ? OR a.name = ? AND (k.name > ? OR k.name = ? AND k.grp > ?))`,
		[]any{p.account, p.account, p.kind.Name, p.kind.Name, p.kind.Group}}
}

// fromAccountKind lets the position's own account and kind in.
func (p position) fromAccountKind() condition {
	return condition{`(a.name > ? OR a.name = ? AND (k.name > ? OR k.name = ? AND k.grp >= ?))`,
		[]any{p.account, p.account, p.kind.Name, p.kind.Name, p.kind.Group}}
}

// afterName is the same within one account and kind, whose rows the primary key
// keeps in this order.
func (p position) afterName() condition {
	return condition{`(o.namespace > ? OR o.namespace = ? AND o.name > ?)`, []any{p.namespace, p.namespace, p.name}}
}

// condition is a part of a WHERE clause with its parameters.
type condition struct {
	sql  string
	args []any
}

// conditions must all hold.
type conditions []condition

func (c conditions) where() (string, []any) {
	if len(c) == 0 {
		return "", nil
	}
	parts := make([]string, len(c))
	var args []any
	for i, cond := range c {
		parts[i] = cond.sql
		args = append(args, cond.args...)
	}
	return " WHERE " + strings.Join(parts, " AND "), args
}
