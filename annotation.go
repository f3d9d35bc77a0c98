package vedette

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// AccountAnnotation is the annotation with which output names the account of an object, because the object itself does
// not name its cluster. It is not part of the object, and is never applied.
const AccountAnnotation = "vedette.io/account"

// UnquoteAnnotation returns the text of one of Spinnaker's annotations. Early versions of
// Spinnaker wrote texts as JSON strings, and objects still carry them: "\"web\"" means "web".
// A text that begins and ends like a JSON string but is not one has no meaning; it is empty.
func UnquoteAnnotation(value string) string {
	text, _ := parseTextAnnotation(value)
	return text
}

// parseTextAnnotation is UnquoteAnnotation, and reports whether the annotation has a meaning.
func parseTextAnnotation(value string) (text string, ok bool) {
	if len(value) < 2 || value[0] != '"' || value[len(value)-1] != '"' {
		return value, true
	}
	if json.NewDecoder(strings.NewReader(value)).Decode(&text) != nil {
		return "", false
	}
	return text, true
}

// parseNumberAnnotation returns the integer that Clouddriver reads from an annotation, or nil if it
// reads none: a JSON number, of which it cuts off the fraction, or a JSON string of an integer. It has 32 bits.
func parseNumberAnnotation(value string) *int {
	var raw json.RawMessage
	if json.Unmarshal([]byte(value), &raw) != nil {
		return nil
	}
	text := string(raw)
	if text[0] == '"' {
		text = strings.TrimSpace(UnquoteAnnotation(text))
	} else if f, err := strconv.ParseFloat(text, 64); err == nil && math.MinInt32 <= f && f <= math.MaxInt32 {
		text = strconv.Itoa(int(f))
	}
	number, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return nil
	}
	n := int(number)
	return &n
}
