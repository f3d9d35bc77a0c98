package read

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/sqldb"
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
func (p position) after() sqldb.Condition {
	return sqldb.Cond(`(a.name > ? OR a.name = ? AND (k.name > ? OR k.name = ? AND (k.grp > ? OR k.grp = ? AND (o.namespace > ? OR o.namespace = ? AND o.name > ?))))`, p.account, p.account, p.kind.Name, p.kind.Name, p.kind.Group, p.kind.Group, p.namespace, p.namespace, p.name)
}

// afterAccountKind is after for account and kind only.
func (p position) afterAccountKind() sqldb.Condition {
	return sqldb.Cond(`(a.name > ? OR a.name = ? AND (k.name > ? OR k.name = ? AND k.grp > ?))`, p.account, p.account, p.kind.Name, p.kind.Name, p.kind.Group)
}

// fromAccountKind is afterAccountKind, including the position's own account and kind.
func (p position) fromAccountKind() sqldb.Condition {
	return sqldb.Cond(`(a.name > ? OR a.name = ? AND (k.name > ? OR k.name = ? AND k.grp >= ?))`, p.account, p.account, p.kind.Name, p.kind.Name, p.kind.Group)
}

// afterName is after within one account and kind, where the primary key has the same order.
func (p position) afterName() sqldb.Condition {
	return sqldb.Cond(`(o.namespace > ? OR o.namespace = ? AND o.name > ?)`, p.namespace, p.namespace, p.name)
}
