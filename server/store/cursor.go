package store

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/vedette-io/vedette"
)

// position is the place of an object in the order of all objects.
type position struct {
	account   string
	kind      vedette.Kind
	namespace string
	name      string
}

// String returns the cursor of a position. Its format is opaque and may change with any version.
func (p position) String() string {
	// Strings always marshal, and stored ones are valid UTF-8.
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
		return position{}, vedette.Errorf(vedette.Invalid, "the cursor %.100q is invalid: request the first page again, without a cursor", cursor)
	}
	return position{account: parts[0], kind: vedette.Kind{Name: parts[1], Group: parts[2]}, namespace: parts[3], name: parts[4]}, nil
}

// compareAccountKind compares account and kind only.
func (p position) compareAccountKind(other position) int {
	return cmp.Or(cmp.Compare(p.account, other.account), cmp.Compare(p.kind.Name, other.kind.Name),
		cmp.Compare(p.kind.Group, other.kind.Group))
}

// after returns the condition that a row of accounts a, kinds k and objects o comes after the
// position. It is not written as (a, b) > (x, y), because databases use no index for that if the
// columns are of several tables, and MySQL never does.
func (p position) after() condition {
	return condition{`(a.name > ? OR a.name = ? AND (k.name > ? OR k.name = ? AND (k.grp > ? OR k.grp = ? AND (o.namespace > ? OR o.namespace = ? AND o.name > ?))))`,
		[]any{p.account, p.account, p.kind.Name, p.kind.Name, p.kind.Group, p.kind.Group, p.namespace, p.namespace, p.name}}
}

// afterAccountKind is after for account and kind only.
func (p position) afterAccountKind() condition {
	return condition{`(a.name > ? OR a.name = ? AND (k.name > ? OR k.name = ? AND k.grp > ?))`,
		[]any{p.account, p.account, p.kind.Name, p.kind.Name, p.kind.Group}}
}

// fromAccountKind is afterAccountKind, including the position's own account and kind.
func (p position) fromAccountKind() condition {
	return condition{`(a.name > ? OR a.name = ? AND (k.name > ? OR k.name = ? AND k.grp >= ?))`,
		[]any{p.account, p.account, p.kind.Name, p.kind.Name, p.kind.Group}}
}

// afterName is after within one account and kind, where the primary key has the same order.
func (p position) afterName() condition {
	return condition{`(o.namespace > ? OR o.namespace = ? AND o.name > ?)`, []any{p.namespace, p.namespace, p.name}}
}

// condition is a part of a WHERE clause, with its arguments.
type condition struct {
	sql  string
	args []any
}

// never is a condition that no row meets.
var never = condition{"1 = 0", nil}

// equals returns the condition that a column has a text of at most maxBytes. A text that no database
// stores unchanged selects nothing: shortened or repaired, it could be the name of another row.
func equals(column, value string, maxBytes int) condition {
	if !isValidText(value, maxBytes) {
		return never
	}
	return condition{column + " = ?", []any{value}}
}

// isOneOf is equals for any of several texts.
func isOneOf[T ~string](column string, values []T, maxBytes int) condition {
	args := make([]any, 0, len(values))
	for _, v := range values {
		if isValidText(string(v), maxBytes) {
			args = append(args, string(v))
		}
	}
	if len(args) == 0 {
		return never
	}
	return condition{column + " IN (" + placeholders(len(args)) + ")", args}
}

// conditions are joined by AND.
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
