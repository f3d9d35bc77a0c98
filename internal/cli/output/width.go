package output

import (
	"unicode"

	"github.com/vedette-io/vedette/internal/textcheck"
)

// displayWidth returns how many columns of a terminal a sanitized text takes.
func displayWidth(text string) int {
	width := 0
	for _, r := range text {
		width += runeWidth(r)
	}
	return width
}

func runeWidth(r rune) int {
	switch {
	case r < 0x300 || textcheck.IsHidden(r): // sanitized to one character
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}

// wide has the characters that terminals show in two columns: those that Unicode calls wide, in
// coarse ranges.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x1100, Hi: 0x115f, Stride: 1}, // Hangul
		{Lo: 0x2e80, Hi: 0x303e, Stride: 1}, // Chinese radicals and punctuation
		{Lo: 0x3041, Hi: 0x33ff, Stride: 1}, // Japanese
		{Lo: 0x3400, Hi: 0x4dbf, Stride: 1}, // Chinese
		{Lo: 0x4e00, Hi: 0xa4cf, Stride: 1},
		{Lo: 0xac00, Hi: 0xd7a3, Stride: 1}, // Hangul
		{Lo: 0xf900, Hi: 0xfaff, Stride: 1},
		{Lo: 0xfe30, Hi: 0xfe6f, Stride: 1},
		{Lo: 0xff00, Hi: 0xff60, Stride: 1}, // full width forms
		{Lo: 0xffe0, Hi: 0xffe6, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x1f300, Hi: 0x1f64f, Stride: 1}, // pictures
		{Lo: 0x1f680, Hi: 0x1f6ff, Stride: 1},
		{Lo: 0x1f900, Hi: 0x1f9ff, Stride: 1},
		{Lo: 0x20000, Hi: 0x3fffd, Stride: 1},
	},
}
