package vedette

import (
	"encoding/json"
	"strings"
)

// UnquoteAnnotation returns the text of one of Spinnaker's annotations. Early versions of
// Spinnaker wrote texts as JSON strings, and objects still carry them: "\"web\"" means "web".
// A text that begins and ends like a JSON string but is not one has no meaning; it is empty.
func UnquoteAnnotation(value string) string {
	if len(value) < 2 || value[0] != '"' || value[len(value)-1] != '"' {
		return value
	}
	var text string
	if json.NewDecoder(strings.NewReader(value)).Decode(&text) != nil {
		return ""
	}
	return text
}

// parseNumberAnnotation returns the number in an annotation, or nil if it is not a JSON
// number.
func parseNumberAnnotation(value string) *int {
	var number *int
	if json.Unmarshal([]byte(UnquoteAnnotation(value)), &number) != nil {
		return nil
	}
	return number
}
