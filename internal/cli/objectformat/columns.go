package objectformat

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"k8s.io/client-go/util/jsonpath"
)

// Columns are the columns of -o custom-columns.
type Columns struct {
	headers []string
	paths   []*jsonpath.JSONPath
	hidden  bool // the headers
}

// ParseColumns parses HEADER:PATH,....
func ParseColumns(spec string, noHeaders bool) (*Columns, error) {
	c := &Columns{hidden: noHeaders}
	for part := range strings.SplitSeq(spec, ",") {
		header, path, found := strings.Cut(part, ":")
		if !found {
			return nil, fmt.Errorf("unexpected custom-columns spec: %s, expected <header>:<json-path-expr>", part)
		}
		if err := c.add(header, path); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// parseColumnsFile parses a file whose first line has the headers, and the second the paths.
func parseColumnsFile(text string, noHeaders bool) (*Columns, error) {
	const expected = "Expected format is one line of space separated headers, one line of space separated column specs"
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	if text == "" {
		return nil, errors.New("invalid template, missing header line. " + expected)
	}
	if len(lines) < 2 || strings.TrimSpace(lines[1]) == "" {
		return nil, errors.New("invalid template, missing spec line. " + expected)
	}
	headers, paths := strings.Fields(lines[0]), strings.Fields(lines[1])
	if len(headers) != len(paths) {
		return nil, fmt.Errorf("number of headers (%d) and field specifications (%d) don't match", len(headers), len(paths))
	}
	c := &Columns{hidden: noHeaders}
	for i, header := range headers {
		if err := c.add(header, paths[i]); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *Columns) add(header, path string) error {
	parsed, _, err := parsePath(header, path)
	if err != nil {
		return err
	}
	c.headers, c.paths = append(c.headers, header), append(c.paths, parsed)
	return nil
}

// Header returns the headers; nil if they are not shown.
func (c *Columns) Header() []string {
	if c.hidden {
		return nil
	}
	return c.headers
}

// Row returns the cells of an object.
func (c *Columns) Row(object map[string]any) ([]string, error) {
	cells := make([]string, len(c.paths))
	for i, path := range c.paths {
		values, err := path.FindResults(object)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", c.headers[i], err)
		}
		var texts []string
		if len(values) == 0 || len(values[0]) == 0 {
			texts = []string{"<none>"}
		}
		for _, list := range values {
			for _, v := range list {
				texts = append(texts, fmt.Sprint(v.Interface()))
			}
		}
		cells[i] = strings.Join(texts, ",")
	}
	return cells, nil
}

// relaxedPath is a path with or without braces and the leading dot.
var relaxedPath = regexp.MustCompile(`^\{\.?([^{}]+)\}$|^\.?([^{}]+)$`)

// CompletePath returns the JSONPath expression for metadata.name, .metadata.name, {metadata.name} or {.metadata.name}.
func CompletePath(text string) (string, error) {
	found := relaxedPath.FindStringSubmatch(text)
	if found == nil {
		return "", errors.New("unexpected path string, expected a 'name1.name2' or '.name1.name2' or '{name1.name2}' or '{.name1.name2}'")
	}
	return "{." + found[1] + found[2] + "}", nil
}

// parsePath parses a path as --sort-by and custom columns take it. It returns the complete expression, too. An empty path has no
// values.
func parsePath(name, text string) (*jsonpath.JSONPath, string, error) {
	expression := ""
	if text != "" {
		var err error
		if expression, err = CompletePath(text); err != nil {
			return nil, "", err
		}
	}
	path := jsonpath.New(name).AllowMissingKeys(true)
	if err := path.Parse(expression); err != nil {
		return nil, "", err //nolint:wrapcheck // in kubectl's words
	}
	return path, expression, nil
}

// firstValue returns the first value that a path finds, nil if there is none.
func firstValue(path *jsonpath.JSONPath, object map[string]any) (any, error) {
	values, err := path.FindResults(object)
	if err != nil || len(values) == 0 || len(values[0]) == 0 {
		return nil, err //nolint:wrapcheck // the caller says by what it sorts
	}
	v := values[0][0]
	if !v.IsValid() || v.Kind() == reflect.Interface && v.IsNil() {
		return nil, nil
	}
	return v.Interface(), nil
}
