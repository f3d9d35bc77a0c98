package read

import (
	"strings"

	"github.com/vedette-io/vedette/server/store/sqldb"
)

// contains returns the condition that an expression contains a text, in which "*" stands for any
// text. It distinguishes upper and lower case: names are in the collation of bytes.
func (d *readDialect) contains(expr, text string) sqldb.Condition {
	if d.glob {
		return sqldb.Cond(expr+" GLOB ?", "*"+globEscaper.Replace(text)+"*")
	}
	return sqldb.Cond(expr+" LIKE ? ESCAPE '!'", "%"+likeEscaper.Replace(text)+"%")
}

// startsWith returns the condition that an expression begins with a text.
func (d *readDialect) startsWith(expr, text string) sqldb.Condition {
	if d.glob {
		return sqldb.Cond(expr+" GLOB ?", globEscaper.Replace(text)+"*")
	}
	return sqldb.Cond(expr+" LIKE ? ESCAPE '!'", likeEscaper.Replace(text)+"%")
}

var (
	globEscaper = strings.NewReplacer("[", "[[]", "?", "[?]")
	likeEscaper = strings.NewReplacer("!", "!!", "%", "!%", "_", "!_", "*", "%")
)

// flags returns the lowest four bits of the flags of encoded attributes, as a hexadecimal digit. It
// is empty for an object without attributes.
func (d *readDialect) flags(column string) string {
	return "SUBSTR(" + strings.ReplaceAll(d.hexExpr, "?", "SUBSTR("+column+", 2, 1)") + ", 2, 1)"
}
