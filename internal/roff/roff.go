// Package roff writes texts into manual pages.
package roff

import (
	"fmt"
	"strings"
)

// Escape returns a line that has no meaning for roff, in ASCII.
func Escape(line string) string {
	var b strings.Builder
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		b.WriteString(`\&`) // not a macro
	}
	for _, r := range line {
		switch {
		case r == '\\':
			b.WriteString(`\e`)
		case r == '-':
			b.WriteString(`\-`) // a minus, so that what users copy is one
		case r > 126:
			fmt.Fprintf(&b, `\[u%04X]`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Lines escapes each line of a text.
func Lines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(Escape(strings.TrimSuffix(line, "\n")) + "\n")
	}
	return b.String()
}

// Quote returns an argument of a macro.
func Quote(argument string) string {
	return `"` + strings.ReplaceAll(Escape(argument), `"`, `\(dq`) + `"`
}
