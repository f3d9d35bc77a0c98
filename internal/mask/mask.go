// Package mask hides the values of a Secret in what is said of it. API servers quote
// what they refuse, and admission webhooks say what they like: in error messages,
// reasons and warnings.
//
// What is hidden, in each of the forms that a value could be quoted in:
//
//   - values of 3 bytes or more, wherever they stand; shorter ones between quotes;
//   - lines of a value, and texts in a value that is JSON, of 6 bytes or more;
//   - any 12 bytes in a row of a value;
//   - what begins as a value does, for 3 bytes or more, at the end of a text that was
//     cut (HideCut).
//
// Less formally: what is left may tell a word of a long value, but no password, key or
// token. Package comments of server/task and agent/operate say whose words pass here.
package mask

import (
	"strings"
	"unicode/utf8"
)

// Mark stands where a value stood.
const Mark = "***"

const (
	leastHidden = 3  // bytes of a value that is hidden wherever it stands
	leastPart   = 6  // bytes of a line of a value, or of a text within
	gram        = 12 // bytes in a row that are hidden of any value
)

// longest bounds the texts that are looked through, in bytes. What is beyond is no
// message that anybody reads, and is left out.
const longest = 64 << 10

// Values are the values of one Secret. The zero value has none.
type Values struct {
	forms  map[string]bool // in which a value may be quoted
	hidden bool            // what the values are could not be read
}

// Hide returns a text without the values. It returns valid UTF-8.
func (v Values) Hide(text string) string { return v.hide(text, false) }

// HideCut is Hide for a text that may have been cut at its end.
func (v Values) HideCut(text string) string { return v.hide(text, true) }

func (v Values) hide(text string, cut bool) string {
	switch {
	case v.hidden && text != "":
		return "(not shown: what was submitted can't be read, so that its values can't be hidden)"
	case len(text) > longest:
		text, cut = text[:longest], true
	}
	m := marks{text: text, hide: make([]bool, len(text))}
	m.whole(v.forms)
	m.grams(v.forms)
	if cut {
		m.end(v.forms)
	}
	return m.result()
}

// marks are the bytes of a text that are to be hidden.
type marks struct {
	text string
	hide []bool
	any  bool
}

func (m *marks) mark(from, to int) {
	m.any = true
	for i := from; i < to; i++ {
		m.hide[i] = true
	}
}

// whole marks what is too short for grams. Matches may overlap.
func (m *marks) whole(forms map[string]bool) {
	for form := range forms {
		if len(form) >= gram {
			continue
		}
		for from := 0; ; {
			i := strings.Index(m.text[from:], form)
			if i < 0 {
				break
			}
			m.mark(from+i, from+i+len(form))
			from += i + 1
		}
	}
}

// grams marks all bytes of the text that are part of a run of a form.
func (m *marks) grams(forms map[string]bool) {
	at := map[string][]int{}
	for i := 0; i+gram <= len(m.text); i++ {
		at[m.text[i:i+gram]] = append(at[m.text[i:i+gram]], i)
	}
	for form := range forms {
		for i := 0; i+gram <= len(form); i++ {
			for _, from := range at[form[i:i+gram]] {
				m.mark(from, from+gram)
			}
			delete(at, form[i:i+gram])
		}
	}
}

// end marks at the end of the text what a form begins with.
func (m *marks) end(forms map[string]bool) {
	for form := range forms {
		for n := min(len(form), len(m.text)); n >= leastHidden; n-- {
			if strings.HasSuffix(m.text, form[:n]) {
				m.mark(len(m.text)-n, len(m.text))
				break
			}
		}
	}
}

func (m *marks) result() string {
	if !m.any {
		return strings.ToValidUTF8(m.text, string(utf8.RuneError))
	}
	var b strings.Builder
	for i := range m.hide {
		switch {
		case !m.hide[i]:
			b.WriteByte(m.text[i])
		case i == 0 || !m.hide[i-1]:
			b.WriteString(Mark)
		}
	}
	return strings.ToValidUTF8(b.String(), string(utf8.RuneError))
}
