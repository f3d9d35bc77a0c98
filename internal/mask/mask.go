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
//     cut.
//
// Less formally: what is left may tell a word of a long value, but no password, key or
// token. The memory that it takes goes by the length of what is said, and by the longest
// value, not by their number.
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

// longest bounds a text that is looked through, in bytes. What is beyond is no message
// that anybody reads, and is left out.
const longest = 16 << 10

// Values are the values of one Secret. The zero value has none.
type Values struct {
	texts  map[string]int // and how many bytes a form of each must have to be hidden
	hidden bool           // what the values are could not be read, or they are too many
}

// hiddenText stands for what was said where the values can't be hidden.
const hiddenText = "(not shown: it may quote the Secret)"

// Text is something that was said.
type Text struct {
	Said string
	Cut  bool // it may have been cut at its end
}

// Hide returns a text without the values. It returns valid UTF-8.
func (v Values) Hide(text string) string { return v.HideAll([]Text{{Said: text}})[0] }

// HideAll is Hide for many texts, at the cost of one.
func (v Values) HideAll(texts []Text) []string {
	all := make([]string, len(texts))
	s := newSearch(texts)
	for text, least := range v.texts {
		s.look(text, least)
	}
	for i, t := range texts {
		if v.hidden && t.Said != "" {
			all[i] = hiddenText
			continue
		}
		all[i] = s.result(i)
	}
	return all
}

// search looks for forms of values in texts. Its index is made of the texts, since they
// are short, and forms are made one after the other.
type search struct {
	text   string // all texts, one after the other, with a zero byte behind each
	starts []int  // of each text, and the end of all
	hide   []bool // by byte
	parts  map[string]bool
	pairs  [1 << 16]bool    // of bytes that parts begin with: most forms have none of them
	ends   map[string][]int // the ends of texts that were cut, by what stands before them
}

func newSearch(texts []Text) *search {
	s := &search{parts: map[string]bool{}, ends: map[string][]int{}}
	var all strings.Builder
	for _, t := range texts {
		s.starts = append(s.starts, all.Len())
		all.WriteString(t.Said[:min(len(t.Said), longest)])
		if t.Cut || len(t.Said) > longest {
			s.cutAt(all.String()[s.starts[len(s.starts)-1]:], all.Len())
		}
		all.WriteByte(0) // or a value would be found that begins in one text and ends in the next
	}
	s.text = all.String()
	s.starts, s.hide = append(s.starts, len(s.text)), make([]bool, len(s.text))
	for from := range len(s.text) {
		for to := from + leastHidden; to <= min(from+gram, len(s.text)); to++ {
			s.parts[s.text[from:to]] = true
		}
		if from+1 < len(s.text) {
			s.pairs[pair(s.text[from:])] = true
		}
	}
	return s
}

func pair(text string) int { return int(text[0])<<8 | int(text[1]) }

// cutAt notes what stands at the end of a text that was cut.
func (s *search) cutAt(text string, end int) {
	for n := leastHidden; n < gram && n <= len(text); n++ {
		s.ends[text[len(text)-n:]] = append(s.ends[text[len(text)-n:]], end)
	}
}

// find marks where a form stands, or a part of it.
func (s *search) find(form string) {
	n := min(len(form), gram)
	if n < leastHidden {
		return
	}
	for i := 0; i+n <= len(form); i++ {
		if s.pairs[pair(form[i:])] && s.parts[form[i:i+n]] {
			s.markAll(form[i : i+n])
		}
	}
	for n := leastHidden; len(s.ends) > 0 && n < gram && n <= len(form); n++ {
		for _, end := range s.ends[form[:n]] {
			s.mark(end-n, end)
		}
	}
}

// markAll marks all places of a part, once. They may overlap.
func (s *search) markAll(part string) {
	delete(s.parts, part)
	for from := 0; ; {
		i := strings.Index(s.text[from:], part)
		if i < 0 {
			return
		}
		s.mark(from+i, from+i+len(part))
		from += i + 1
	}
}

func (s *search) mark(from, to int) {
	for i := from; i < to; i++ {
		s.hide[i] = true
	}
}

// result is what is left of a text.
func (s *search) result(text int) string {
	from, to := s.starts[text], s.starts[text+1]-1
	var b strings.Builder
	for i := from; i < to; i++ {
		switch {
		case !s.hide[i]:
			b.WriteByte(s.text[i])
		case i == from || !s.hide[i-1]:
			b.WriteString(Mark)
		}
	}
	return strings.ToValidUTF8(b.String(), string(utf8.RuneError))
}
