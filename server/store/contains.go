package store

import "strings"

// contains returns the condition that an expression contains a text, in which "*" stands for any
// text. It distinguishes upper and lower case: names are in the collation of bytes.
func (d *dialect) contains(expr, text string) condition {
	if d.glob {
		return condition{expr + " GLOB ?", []any{"*" + globEscaper.Replace(text) + "*"}}
	}
	return condition{expr + " LIKE ? ESCAPE '!'", []any{"%" + likeEscaper.Replace(text) + "%"}}
}

// startsWith returns the condition that an expression begins with a text.
func (d *dialect) startsWith(expr, text string) condition {
	if d.glob {
		return condition{expr + " GLOB ?", []any{globEscaper.Replace(text) + "*"}}
	}
	return condition{expr + " LIKE ? ESCAPE '!'", []any{likeEscaper.Replace(text) + "%"}}
}

var (
	globEscaper = strings.NewReplacer("[", "[[]", "?", "[?]")
	likeEscaper = strings.NewReplacer("!", "!!", "%", "!%", "_", "!_", "*", "%")
)

// flags returns the lowest four bits of the flags of encoded attributes, as a hexadecimal digit. It
// is empty for an object without attributes.
func (d *dialect) flags(column string) string {
	return "SUBSTR(" + strings.ReplaceAll(d.hexExpr, "?", "SUBSTR("+column+", 2, 1)") + ", 2, 1)"
}
