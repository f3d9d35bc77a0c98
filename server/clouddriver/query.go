package clouddriver

import (
	"net/http"
	"net/url"
	"strings"
)

// parameterError is a query parameter that Spring cannot convert.
type parameterError struct{ message string }

func (e *parameterError) Error() string { return e.message }

// booleans are the texts that Spring accepts as a boolean.
var booleans = map[string]bool{"true": true, "on": true, "yes": true, "1": true, "false": false, "off": false, "no": false, "0": false}

// booleanParam returns a query parameter that is a boolean in Clouddriver: other texts are
// rejected. Without the parameter, or if it is empty, it is true.
func booleanParam(query url.Values, name string) (bool, error) {
	text := strings.TrimSpace(singleParam(query, name))
	if text == "" {
		return true, nil
	}
	value, ok := booleans[strings.ToLower(text)]
	if !ok {
		return false, &parameterError{"Failed to convert value of type 'java.lang.String' to required type 'boolean' (parameter: " + name +
			"): Invalid boolean value [" + truncate(text, 100) + "]"}
	}
	return value, nil
}

// singleParam returns a query parameter that is one text. Spring joins several to one with commas, so
// that none of them alone is what the request asks for.
func singleParam(query url.Values, name string) string { return strings.Join(query[name], ",") }

// textParam returns a query parameter that Clouddriver converts by itself: all but "true" is
// false.
func textParam(query url.Values, name string) bool {
	return strings.EqualFold(singleParam(query, name), "true")
}

// listParam returns a query parameter that is a list, as Spring reads it: one text with commas,
// or several. exists reports whether the request has the parameter.
func listParam(r *http.Request, name string) (list []string, exists bool) {
	values, exists := r.URL.Query()[name]
	if len(values) != 1 {
		return values, exists
	}
	for part := range strings.SplitSeq(values[0], ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list, exists
}

// truncate shortens a text for an error message, between two characters.
func truncate(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "..."
}
