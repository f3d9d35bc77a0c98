// Package mask replaces the values of Secrets in error messages, reasons and warnings by ***. API
// servers quote the values that they reject, and admission webhooks write what they like.
//
// It masks, in all forms in which a value may be quoted:
//
//   - values of 3 bytes or more; shorter ones between quotes;
//   - lines of a value, and strings in a value that is JSON, of 6 bytes or more;
//   - any 12 consecutive bytes of a value;
//   - the beginning of a value, of 3 bytes or more, at the end of a text that was cut.
//
// Less formally: a masked text may contain a word of a long value, but no password, key or token.
// The memory needed depends on the length of the texts and of the longest value, not on the number
// of values.
//
// Which manifests and patches are masked as those of Secrets is decided here, for the agent and the server. Where a patch is
// of a kind Secret of another API group, it counts as one: masking too much costs a few words of a message, masking too
// little a secret.
package mask

import (
	"strings"
	"unicode/utf8"
)

// Placeholder replaces values.
const Placeholder = "***"

const (
	minLength     = 3  // bytes of a value that is masked without quotes around it
	minPartLength = 6  // bytes of a line of a value, or of a string in it
	gramLength    = 12 // consecutive bytes of a value that are masked
)

// maxTextLength limits a text, in bytes. The rest is removed, because nobody reads messages that are
// longer.
const maxTextLength = 16 << 10

// Values are the values of one Secret. The zero value has none.
type Values struct {
	texts    map[string]int // text to the least number of bytes of it that are masked without quotes
	withheld bool           // the values can't be read, or are too many
}

// withheldText replaces texts if the values are unknown or too many.
const withheldText = "(not shown: it may quote the Secret)"

// Text is a text to mask.
type Text struct {
	Value     string
	Truncated bool // its end may have been cut
}

// Mask returns a text without the values, as valid UTF-8.
func (v Values) Mask(text string) string { return v.MaskAll([]Text{{Value: text}})[0] }

// MaskAll is Mask for several texts, at the cost of one.
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

// searcher finds the forms of values in texts. It indexes the texts, because they are short, and
// searches for one form after the other, so that forms need not be kept.
type searcher struct {
	text          string // all texts, each followed by a zero byte
	starts        []int  // of the texts, and the end of the last one
	masked        []bool // by byte
	substrings    map[string]bool
	bigrams       [1 << 16]bool    // of the first two bytes of all substrings, because most forms have none of them
	truncatedEnds map[string][]int // positions of the ends of truncated texts, by the text before them
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
		all.WriteByte(0) // so that no value is found across two texts
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

// addTruncatedEnd indexes the end of a text that was cut.
func (s *searcher) addTruncatedEnd(text string, end int) {
	for n := minLength; n < gramLength && n <= len(text); n++ {
		s.truncatedEnds[text[len(text)-n:]] = append(s.truncatedEnds[text[len(text)-n:]], end)
	}
}

// find marks all places of a form, or of a part of it.
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

// maskAll marks all places of a part, which may overlap. It does so once per part.
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

// maskedText returns a text with its marked bytes replaced.
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
