package operate

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/vedette-io/vedette/agent/operate/request"
)

// explainWrongType rewrites the error of a manifest with a value of the wrong type, for example a
// port in a ConfigMap, whose values are strings. API servers answer such a server-side apply with
// status 500 and Go's notation of the value.
func explainWrongType(e *request.StatusError, p request.Path) {
	const prefix = "failed to create typed patch object ("
	if e.Status != http.StatusInternalServerError || !strings.HasPrefix(e.Message, prefix) {
		return
	}
	var problems []string
	for _, found := range wrongTypePattern.FindAllStringSubmatch(e.Message, -1) {
		problem := found[1] + ": expected " + found[2]
		if found[2] == "string" {
			problem += ": quote the value"
		}
		problems = append(problems, problem)
	}
	if problems == nil {
		return
	}
	slices.Sort(problems) // API servers list them in random order
	e.Status, e.Reason = http.StatusBadRequest, "BadRequest"
	e.Message = fmt.Sprintf("%s %q is invalid: %s", p.Kind, p.Name, strings.Join(problems, ", "))
}

// wrongTypePattern matches one field and the type that it should have.
var wrongTypePattern = regexp.MustCompile(`(?m)(\.\S[^\n]*?): expected ([^,\n]+), got `)
