package metricset

import (
	"net/http"
	"strconv"
)

// Other is the label value for everything that is not in a list of known values.
const Other = "other"

// StatusCode returns an HTTP status as a label value. Statuses that no RFC defines become Other,
// because the other side chooses them. 0 stands for a request without an answer, and becomes
// "none".
func StatusCode(code int) string {
	switch {
	case code == 0:
		return "none"
	case http.StatusText(code) == "":
		return Other
	}
	return strconv.Itoa(code)
}
