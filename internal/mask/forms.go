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

// add adds a value, and what it decodes to where it is base64.
func (v Values) add(value string, least int) {
	v.addText(value, least)
	compact := strings.Join(strings.Fields(value), "")
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		if decoded, err := encoding.DecodeString(compact); err == nil {
			v.addText(string(decoded), least)
		}
	}
}

// addText adds a text, its lines, and the texts in it where it is JSON.
func (v Values) addText(text string, least int) {
	v.put(text, least)
	text = strings.TrimSpace(text)
	v.put(text, least)
	if lines := strings.Count(text, "\n") + 1; lines <= mostLines {
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

// mostLines bounds the lines of a value that are looked for one by one. Of a longer value
// 12 bytes in a row are hidden still.
const mostLines = 1000

// addLine adds a line, and what stands in it behind a name, as in YAML and in files of
// environment variables.
func (v Values) addLine(line string) {
	v.put(line, leastPart)
	for _, separator := range []string{": ", "="} {
		if _, value, found := strings.Cut(line, separator); found {
			v.put(strings.Trim(strings.TrimSpace(value), `"'`), leastPart)
		}
	}
}

// addParts adds the texts of what a value holds as JSON. They are not looked through
// once more.
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
		v.put(t, leastPart)
		if decoded, err := base64.StdEncoding.DecodeString(t); err == nil {
			v.put(string(decoded), leastPart)
		}
	}
}

// addNumber adds a number as it is written, and as Go prints what it is decoded to.
func (v Values) addNumber(n json.Number) {
	v.put(n.String(), leastHidden)
	if f, err := n.Float64(); err == nil {
		v.put(fmt.Sprint(f), leastHidden)
		v.put(strconv.FormatFloat(f, 'f', -1, 64), leastHidden)
	}
}

// put adds a text of at least so many bytes. A shorter text is added where it is a value
// of its own, which is hidden between quotes.
func (v Values) put(text string, least int) {
	if text == "" || len(text) < least && least > leastHidden {
		return
	}
	if before, there := v.texts[text]; !there || least < before {
		v.texts[text] = least
	}
}

// mostForms is how long a text may be that is looked for in all forms, in bytes. Longer
// ones are looked for as they are, escaped and in base64.
const mostForms = 4 << 10

// look looks for the forms of a text.
func (s *search) look(text string, least int) {
	if len(text) < least {
		for _, quote := range []string{`"`, `\"`, "'", "`"} {
			s.find(quote + text + quote)
		}
	}
	raw := []byte(text)
	s.find(text)
	s.find(escaped(text))
	s.find(jsonEscaped(text))
	s.find(base64.StdEncoding.EncodeToString(raw))
	s.find(base64.URLEncoding.EncodeToString(raw))
	if len(text) > mostForms {
		return
	}
	s.find(base64.RawStdEncoding.EncodeToString(raw))
	s.find(base64.RawURLEncoding.EncodeToString(raw))
	s.find(escaped(escaped(text)))
	s.find(strip(strconv.QuoteToASCII(text)))
	s.find(url.QueryEscape(text))
	s.find(url.PathEscape(text))
	s.lookForDigits(raw)
}

// lookForDigits looks for bytes as they are printed one by one.
func (s *search) lookForDigits(raw []byte) {
	digits := hex.EncodeToString(raw)
	s.find(digits)
	s.find(strings.ToUpper(digits))
	s.find(fmt.Sprintf("% x", raw))
	s.find(strip(fmt.Sprint(raw)))
	s.find(strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%#v", raw), "[]byte{"), "}"))
}

func strip(quoted string) string { return quoted[1 : len(quoted)-1] }

// escaped is a text as %q prints it.
func escaped(text string) string { return strip(strconv.Quote(text)) }

func jsonEscaped(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil { // any string can be encoded
		panic(err)
	}
	return strip(string(quoted))
}
