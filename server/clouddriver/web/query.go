package web

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/textcheck"
)

// booleans are the texts that Spring accepts as a boolean.
var booleans = map[string]bool{"true": true, "on": true, "yes": true, "1": true, "false": false, "off": false, "no": false, "0": false}

// BooleanParam returns a query parameter that is a boolean in Clouddriver: other texts are
// rejected. Without the parameter, or if it is empty, it is true.
func BooleanParam(query url.Values, name string) (bool, error) {
	text := strings.TrimSpace(SingleParam(query, name))
	if text == "" {
		return true, nil
	}
	value, ok := booleans[strings.ToLower(text)]
	if !ok {
		return false, &Error{Status: http.StatusBadRequest, Exception: "org.springframework.web.method.annotation.MethodArgumentTypeMismatchException",
			Message: "Failed to convert value of type 'java.lang.String' to required type 'boolean' (parameter: " + name +
				"): Invalid boolean value [" + textcheck.Truncate(text, 100) + "]"}
	}
	return value, nil
}

// SingleParam returns a query parameter that is one text. Spring joins several to one with commas, so
// that none of them alone is what the request asks for.
func SingleParam(query url.Values, name string) string { return strings.Join(query[name], ",") }

// TextParam returns a query parameter that Clouddriver converts by itself: all but "true" is
// false.
func TextParam(query url.Values, name string) bool {
	return strings.EqualFold(SingleParam(query, name), "true")
}

// ListParam returns a query parameter that is a list, as Spring reads it: one text with commas,
// or several. exists reports whether the request has the parameter.
func ListParam(r *http.Request, name string) (list []string, exists bool) {
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

// RequiredParam returns a parameter of the query, which may be empty.
func RequiredParam(query url.Values, name string) (string, error) {
	if !query.Has(name) {
		return "", vedette.Errorf(vedette.Invalid, "Required request parameter '%s' for method parameter type String is not present", name)
	}
	return SingleParam(query, name), nil
}
