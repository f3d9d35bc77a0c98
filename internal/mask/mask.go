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

// Placeholder stands where a value stood.
const Placeholder = "***"

const (
	minLength     = 3  // bytes of a value that is hidden wherever it stands
	minPartLength = 6  // bytes of a line of a value, or of a text within
	gramLength    = 12 // bytes in a row that are hidden of any value
)

// maxTextLength bounds a text that is looked through, in bytes. What is beyond is no message
// that anybody reads, and is left out.
const maxTextLength = 16 << 10

// Values are the values of one Secret. The zero value has none.
type Values struct {
	texts    map[string]int // and how many bytes a form of each must have to be hidden
	withheld bool           // what the values are could not be read, or they are too many
}

// withheldText stands for what was said where the values can't be hidden.
const withheldText = "(not shown: it may quote the Secret)"

// Text is something that was said.
type Text struct {
	Value     string
	Truncated bool // it may have been cut at its end
}

// Mask returns a text without the values. It returns valid UTF-8.
func (v Values) Mask(text string) string { return v.MaskAll([]Text{{Value: text}})[0] }

// MaskAll is Hide for many texts, at the cost of one.
func (v Values) MaskAll(texts []Text) []string {
	all := make([]string, len(texts))
	s := newSearcher(texts)
	for text, minLen := range v.texts {
		s.findForms(text, minLen)
	}
	for i, t := range texts {
		if v.withheld && t.Value != "" {
			all[i] = withheldText
			continue
		}
		all[i] = s.maskedText(i)
	}
	return all
}

// searcher looks for forms of values in texts. Its index is made of the texts, since they
// are short, and forms are made one after the other.
type searcher struct {
	text          string // all texts, one after the other, with a zero byte behind each
	starts        []int  // of each text, and the end of all
	masked        []bool // by byte
	substrings    map[string]bool
	bigrams       [1 << 16]bool    // of bytes that parts begin with: most forms have none of them
	truncatedEnds map[string][]int // the ends of texts that were cut, by what stands before them
}

func newSearcher(texts []Text) *searcher {
	s := &searcher{substrings: map[string]bool{}, truncatedEnds: map[string][]int{}}
	var all strings.Builder
	for _, t := range texts {
		s.starts = append(s.starts, all.Len())
		all.WriteString(t.Value[:min(len(t.Value), maxTextLength)])
		if t.Truncated || len(t.Value) > maxTextLength {
			s.addTruncatedEnd(all.String()[s.starts[len(s.starts)-1]:], all.Len())
		}
		all.WriteByte(0) // or a value would be found that begins in one text and ends in the next
	}
	s.text = all.String()
	s.starts, s.masked = append(s.starts, len(s.text)), make([]bool, len(s.text))
	for from := range len(s.text) {
		for to := from + minLength; to <= min(from+gramLength, len(s.text)); to++ {
			s.substrings[s.text[from:to]] = true
		}
		if from+1 < len(s.text) {
			s.bigrams[bigram(s.text[from:])] = true
		}
	}
	return s
}

func bigram(text string) int { return int(text[0])<<8 | int(text[1]) }

// addTruncatedEnd notes what stands at the end of a text that was cut.
func (s *searcher) addTruncatedEnd(text string, end int) {
	for n := minLength; n < gramLength && n <= len(text); n++ {
		s.truncatedEnds[text[len(text)-n:]] = append(s.truncatedEnds[text[len(text)-n:]], end)
	}
}

// find marks where a form stands, or a part of it.
func (s *searcher) find(form string) {
	n := min(len(form), gramLength)
	if n < minLength {
		return
	}
	for i := 0; i+n <= len(form); i++ {
		if s.bigrams[bigram(form[i:])] && s.substrings[form[i:i+n]] {
			s.maskAll(form[i : i+n])
		}
	}
	for n := minLength; len(s.truncatedEnds) > 0 && n < gramLength && n <= len(form); n++ {
		for _, end := range s.truncatedEnds[form[:n]] {
			s.maskRange(end-n, end)
		}
	}
}

// maskAll marks all places of a part, once. They may overlap.
func (s *searcher) maskAll(part string) {
	delete(s.substrings, part)
	for from := 0; ; {
		i := strings.Index(s.text[from:], part)
		if i < 0 {
			return
		}
		s.maskRange(from+i, from+i+len(part))
		from += i + 1
	}
}

func (s *searcher) maskRange(from, to int) {
	for i := from; i < to; i++ {
		s.masked[i] = true
	}
}

// maskedText is what is left of a text.
func (s *searcher) maskedText(text int) string {
	from, to := s.starts[text], s.starts[text+1]-1
	var b strings.Builder
	for i := from; i < to; i++ {
		switch {
		case !s.masked[i]:
			b.WriteByte(s.text[i])
		case i == from || !s.masked[i-1]:
			b.WriteString(Placeholder)
		}
	}
	return strings.ToValidUTF8(b.String(), string(utf8.RuneError))
}
