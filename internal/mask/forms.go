package mask

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// add adds a value, and what it decodes to if it is base64.
func (v Values) add(value string, minLen int) {
	v.addText(value, minLen)
	compact := strings.Join(strings.Fields(value), "")
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		if decoded, err := encoding.DecodeString(compact); err == nil {
			v.addText(string(decoded), minLen)
		}
	}
}

// addText adds a text, its lines, and the strings in it if it is JSON.
func (v Values) addText(text string, minLen int) {
	v.put(text, minLen)
	text = strings.TrimSpace(text)
	v.put(text, minLen)
	if lines := strings.Count(text, "\n") + 1; lines <= maxLines {
		for line := range strings.Lines(text) {
			v.addLine(strings.TrimSpace(line))
		}
	}
	if text == "" || text[0] != '{' && text[0] != '[' {
		return
	}
	if tree, err := decode([]byte(text)); err == nil {
		v.addParts(tree)
	}
}

// maxLines limits the lines of a value that are added one by one. Of a value with more lines, any 12
// consecutive bytes are masked anyway.
const maxLines = 1000

// addLine adds a line, and the value in it after a name, as in YAML and in files of environment
// variables.
func (v Values) addLine(line string) {
	v.put(line, minPartLength)
	for _, separator := range []string{": ", "="} {
		if _, value, found := strings.Cut(line, separator); found {
			v.put(strings.Trim(strings.TrimSpace(value), `"'`), minPartLength)
		}
	}
}

// addParts adds the strings of a value that is JSON. JSON in them is not decoded.
func (v Values) addParts(tree any) {
	switch t := tree.(type) {
	case map[string]any:
		for _, member := range t {
			v.addParts(member)
		}
	case []any:
		for _, element := range t {
			v.addParts(element)
		}
	case string:
		v.put(t, minPartLength)
		if decoded, err := base64.StdEncoding.DecodeString(t); err == nil {
			v.put(string(decoded), minPartLength)
		}
	}
}

// addNumber adds a number as it is written, and as Go prints it.
func (v Values) addNumber(n json.Number) {
	v.put(n.String(), minLength)
	if f, err := n.Float64(); err == nil {
		v.put(fmt.Sprint(f), minLength)
		v.put(strconv.FormatFloat(f, 'f', -1, 64), minLength)
	}
}

// put adds a text if it has at least minLen bytes. A shorter text is added only if it is a whole
// value, which is masked between quotes.
func (v Values) put(text string, minLen int) {
	if text == "" || len(text) < minLen && minLen > minLength {
		return
	}
	if previous, exists := v.texts[text]; !exists || minLen < previous {
		v.texts[text] = minLen
	}
}

// maxFormsLength limits the texts that are searched for in all forms, in bytes. Longer ones are
// searched for unchanged, escaped and in base64.
const maxFormsLength = 4 << 10

func (s *searcher) findForms(text string, minLen int) {
	if len(text) < minLen {
		for _, quote := range []string{`"`, `\"`, "'", "`"} {
			s.find(quote + text + quote)
		}
	}
	raw := []byte(text)
	s.find(text)
	s.find(quoteEscaped(text))
	s.find(jsonEscaped(text))
	s.find(base64.StdEncoding.EncodeToString(raw))
	s.find(base64.URLEncoding.EncodeToString(raw))
	if len(text) > maxFormsLength {
		return
	}
	s.find(base64.RawStdEncoding.EncodeToString(raw))
	s.find(base64.RawURLEncoding.EncodeToString(raw))
	s.find(quoteEscaped(quoteEscaped(text)))
	s.find(trimQuotes(strconv.QuoteToASCII(text)))
	s.find(url.QueryEscape(text))
	s.find(url.PathEscape(text))
	s.findByteForms(raw)
}

// findByteForms searches for bytes that are printed one by one.
func (s *searcher) findByteForms(raw []byte) {
	digits := hex.EncodeToString(raw)
	s.find(digits)
	s.find(strings.ToUpper(digits))
	s.find(fmt.Sprintf("% x", raw))
	s.find(trimQuotes(fmt.Sprint(raw)))
	s.find(strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%#v", raw), "[]byte{"), "}"))
}

func trimQuotes(quoted string) string { return quoted[1 : len(quoted)-1] }

// quoteEscaped returns a text as %q prints it, without the quotes.
func quoteEscaped(text string) string { return trimQuotes(strconv.Quote(text)) }

func jsonEscaped(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil { // any string can be encoded
		panic(err)
	}
	return trimQuotes(string(quoted))
}
