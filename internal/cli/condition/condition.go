// Package condition parses what `vedette wait` waits for, and evaluates it on objects, as kubectl does.
package condition

import (
	"fmt"
	"strings"

	"k8s.io/client-go/util/jsonpath"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/objectformat"
)

// Sort is what a condition is about.
type Sort int

// The sorts of conditions.
const (
	Status   Sort = iota // an entry of status.conditions
	JSONPath             // a value in the object
	Create               // the object exists
	Delete               // the object does not exist
)

// Condition is one condition of --for.
type Condition struct {
	Sort  Sort
	name  string // of the entry, or the expression
	value string // that the entry or the expression has; empty for any
}

// Parse parses the value of --for.
func Parse(text string) (Condition, error) {
	switch {
	case strings.EqualFold(text, "delete"):
		return Condition{Sort: Delete}, nil
	case strings.EqualFold(text, "create"):
		return Condition{Sort: Create}, nil
	}
	if rest, is := strings.CutPrefix(text, "condition="); is {
		name, value, found := strings.Cut(rest, "=")
		if !found {
			value = "true"
		}
		if name == "" {
			return Condition{}, vedette.Errorf(vedette.Invalid, "the condition %q has no name: use condition=Ready or condition=Ready=false", text)
		}
		return Condition{Sort: Status, name: name, value: value}, nil
	}
	if rest, is := strings.CutPrefix(text, "jsonpath="); is {
		return parseJSONPath(rest)
	}
	return Condition{}, vedette.Errorf(vedette.Invalid, "unrecognized condition: %q: use condition=NAME[=VALUE], jsonpath='{EXPRESSION}'[=VALUE], create or delete", text)
}

func parseJSONPath(text string) (Condition, error) {
	parts := splitAtEqualSign(text)
	if len(parts) > 2 {
		return Condition{}, vedette.Errorf(vedette.Invalid,
			"jsonpath wait format must be --for=jsonpath='{.status.readyReplicas}'=3 or --for=jsonpath='{.status.readyReplicas}', got %q", text)
	}
	c := Condition{Sort: JSONPath}
	var err error
	c.name, err = objectformat.CompletePath(parts[0])
	if err != nil {
		return c, vedette.Errorf(vedette.Invalid, "invalid condition %q: %w", "jsonpath="+text, err)
	}
	if _, err := c.parser(); err != nil {
		return c, err
	}
	if len(parts) == 2 {
		c.value = strings.Trim(parts[1], `'"`)
		if c.value == "" {
			return c, vedette.Errorf(vedette.Invalid, "jsonpath wait has to have a value after equal sign, like --for=jsonpath='{.status.readyReplicas}'=3")
		}
	}
	return c, nil
}

// splitAtEqualSign splits a text at =, but not at ==, which filters in expressions contain.
func splitAtEqualSign(text string) []string {
	parts := []string{""}
	for i := 0; i < len(text); i++ {
		last := len(parts) - 1
		switch {
		case strings.HasPrefix(text[i:], "=="):
			parts[last] += "=="
			i++
		case text[i] == '=':
			parts = append(parts, "")
		default:
			parts[last] += text[i : i+1]
		}
	}
	return parts
}

// parser returns a parser, which is for one evaluation: parsers have a state.
func (c Condition) parser() (*jsonpath.JSONPath, error) {
	j := jsonpath.New("wait").AllowMissingKeys(true)
	if err := j.Parse(c.name); err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "%q is not a JSONPath expression: %w", c.name, err)
	}
	return j, nil
}

// IsMet reports whether an object that exists meets the condition. Numbers in the object must be int64 or float64. The
// error says that the condition cannot be evaluated on such an object.
func (c Condition) IsMet(object map[string]any) (bool, error) {
	switch c.Sort {
	case Create:
		return true, nil
	case Status:
		return c.hasStatus(object), nil
	case JSONPath:
		return c.hasValue(object)
	case Delete:
	}
	return false, nil
}

// hasStatus reports whether the object has the condition, and whether it was observed for the current
// generation of the object: an older one says nothing about the change that somebody waits for.
func (c Condition) hasStatus(object map[string]any) bool {
	status, _ := object["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	for _, element := range conditions {
		entry, _ := element.(map[string]any)
		name, _ := entry["type"].(string)
		value, isText := entry["status"].(string)
		if !isText || !strings.EqualFold(name, c.name) {
			continue
		}
		return isObserved(object, entry) && strings.EqualFold(value, c.value)
	}
	return false
}

func isObserved(object, entry map[string]any) bool {
	metadata, _ := object["metadata"].(map[string]any)
	generation, ok := metadata["generation"].(int64)
	if !ok {
		return true
	}
	observed, ok := entry["observedGeneration"].(int64)
	if !ok {
		status, _ := object["status"].(map[string]any)
		observed, ok = status["observedGeneration"].(int64)
	}
	return !ok || observed >= generation
}

func (c Condition) hasValue(object map[string]any) (bool, error) {
	j, err := c.parser()
	if err != nil {
		return false, err
	}
	results, err := j.FindResults(object)
	switch {
	case err != nil:
		return false, vedette.Errorf(vedette.Invalid, "evaluate %s: %w", c.name, err)
	case len(results) == 0 || len(results[0]) == 0:
		return false, nil
	case len(results) > 1:
		return false, vedette.Errorf(vedette.Invalid, "given jsonpath expression %s matches more than one list", c.name)
	case len(results[0]) > 1:
		return false, vedette.Errorf(vedette.Invalid, "given jsonpath expression %s matches more than one value", c.name)
	case c.value == "":
		return true, nil
	}
	value := results[0][0].Interface()
	switch value.(type) {
	case map[string]any, []any:
		return false, vedette.Errorf(vedette.Invalid, "jsonpath %s leads to a nested object or list which is not supported", c.name)
	}
	return strings.TrimSpace(fmt.Sprint(value)) == strings.TrimSpace(c.value), nil
}
