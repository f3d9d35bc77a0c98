package output

import (
	"unicode"

	"golang.org/x/text/width"

	"github.com/vedette-io/vedette/internal/textcheck"
)

// displayWidth returns how many columns of a terminal a sanitized text takes.
func displayWidth(text string) int {
	columns := 0
	for _, r := range text {
		columns += runeWidth(r)
	}
	return columns
}

func runeWidth(r rune) int {
	switch {
	case r < 0x300 || textcheck.IsHidden(r): // sanitized to one character
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}
