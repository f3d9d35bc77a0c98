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

// add adds a value in all its forms, and what it decodes to where it is base64.
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
	v.addForms(text, least)
	v.addForms(strings.TrimSpace(text), least)
	for line := range strings.Lines(text) {
		v.addLine(strings.TrimSpace(line))
	}
	if text = strings.TrimSpace(text); text == "" || text[0] != '{' && text[0] != '[' {
		return
	}
	if tree, err := decode([]byte(text)); err == nil {
		v.addParts(tree)
	}
}

// addLine adds a line, and what stands in it behind a name, as in YAML and in files of
// environment variables.
func (v Values) addLine(line string) {
	v.addForms(line, leastPart)
	for _, separator := range []string{": ", "="} {
		if _, value, found := strings.Cut(line, separator); found {
			v.addForms(strings.Trim(strings.TrimSpace(value), `"'`), leastPart)
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
		v.addForms(t, leastPart)
		if decoded, err := base64.StdEncoding.DecodeString(t); err == nil {
			v.addForms(string(decoded), leastPart)
		}
	}
}

// addNumber adds a number as it is written, and as Go prints what it is decoded to.
func (v Values) addNumber(n json.Number) {
	v.addForms(n.String(), leastHidden)
	if f, err := n.Float64(); err == nil {
		v.addForms(fmt.Sprint(f), leastHidden)
		v.addForms(strconv.FormatFloat(f, 'f', -1, 64), leastHidden)
	}
}

// addForms adds the forms of a text of at least so many bytes. A shorter text of a value
// is hidden where it stands alone between quotes.
func (v Values) addForms(text string, least int) {
	if text == "" || len(text) < least && least > leastHidden {
		return
	}
	if len(text) < least {
		for _, quote := range []string{`"`, `\"`, "'", "`"} {
			v.forms[quote+text+quote] = true
		}
	}
	v.put(text, escaped(text), jsonEscaped(text), base64.StdEncoding.EncodeToString([]byte(text)), base64.URLEncoding.EncodeToString([]byte(text)))
	if len(text) <= mostForms {
		v.putRare(text)
	}
}

// mostForms is how long a text may be that is looked for in all forms, in bytes: some
// take six times its size. Longer ones are looked for as they are, escaped and in
// base64.
const mostForms = 64 << 10

func (v Values) putRare(text string) {
	raw := []byte(text)
	digits := hex.EncodeToString(raw)
	v.put(escaped(escaped(text)), strip(strconv.QuoteToASCII(text)),
		base64.RawStdEncoding.EncodeToString(raw), base64.RawURLEncoding.EncodeToString(raw),
		digits, strings.ToUpper(digits), fmt.Sprintf("% x", raw),
		url.QueryEscape(text), url.PathEscape(text), strip(fmt.Sprint(raw)), commaSeparated(raw))
}

func (v Values) put(forms ...string) {
	for _, form := range forms {
		if len(form) >= leastHidden {
			v.forms[form] = true
		}
	}
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

// commaSeparated is a text as %#v prints its bytes.
func commaSeparated(raw []byte) string {
	return strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%#v", raw), "[]byte{"), "}")
}
