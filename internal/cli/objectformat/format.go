// Package objectformat prints, sorts and selects objects as kubectl get does: the formats of -o, --sort-by and
// --field-selector. Its errors are kubectl's, because people search for them.
//
// The templates are those of k8s.io/cli-runtime. Custom columns and sorting are our own, because kubectl's are in
// k8s.io/kubectl, which would double the program (docs/decisions/0153).
package objectformat

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/vedette-io/vedette"
)

// The formats without a template.
const (
	Table = ""
	Wide  = "wide"
	JSON  = "json"
	YAML  = "yaml"
	Name  = "name"
)

// The formats with a template, as in "jsonpath={.items[*].metadata.name}".
const (
	jsonPath          = "jsonpath"
	jsonPathAsJSON    = "jsonpath-as-json"
	jsonPathFile      = "jsonpath-file"
	goTemplate        = "go-template"
	goTemplateFile    = "go-template-file"
	template          = "template"
	templateFile      = "templatefile"
	customColumns     = "custom-columns"
	customColumnsFile = "custom-columns-file"
)

// formats are the values of -o, in the order in which kubectl's error lists them.
var formats = []string{customColumns, customColumnsFile, goTemplate, goTemplateFile, JSON, jsonPath, jsonPathAsJSON, jsonPathFile,
	Name, template, templateFile, Wide, YAML}

// Usage describes -o.
const Usage = "Output format: wide, json, yaml, name, custom-columns=, custom-columns-file=, go-template=, go-template-file=, " +
	"jsonpath=, jsonpath-as-json= or jsonpath-file=. Defaults to a table."

// Options are the flags that choose a format.
type Options struct {
	Output   string // -o
	Template string // --template
	// StrictKeys makes templates fail if a key is missing (--allow-missing-template-keys=false).
	StrictKeys bool
	NoHeaders  bool
}

// Format is how to print objects.
type Format struct {
	name    string
	printer printers.ResourcePrinter // of a template that takes one document
	columns *Columns
}

// Parse returns the format that the flags choose.
func Parse(o Options) (*Format, error) {
	name, text, given := strings.Cut(o.Output, "=")
	if o.Output == "" && o.Template != "" {
		name = goTemplate
	}
	if !slices.Contains(formats, name) && name != Table || given && !takesTemplate(name) {
		return nil, vedette.Errorf(vedette.Invalid, "unable to match a printer suitable for the output format %q, allowed formats are: %s", o.Output,
			strings.Join(formats, ","))
	}
	f := &Format{name: name}
	if !takesTemplate(name) {
		return f, nil
	}
	if o.Template != "" {
		text = o.Template
	}
	if err := f.parseTemplate(text, o); err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "%w", err)
	}
	return f, nil
}

func takesTemplate(name string) bool { return slices.Contains(formats, name) && !isFixed(name) }

func isFixed(name string) bool { return name == JSON || name == YAML || name == Name || name == Wide }

func (f *Format) parseTemplate(text string, o Options) (err error) {
	isColumns := f.name == customColumns || f.name == customColumnsFile
	switch {
	case text == "" && isColumns:
		return errors.New("custom-columns format specified but no custom columns given")
	case text == "":
		return errors.New("template format specified but no template given")
	}
	if strings.HasSuffix(f.name, "file") {
		path := text
		if text, err = readTemplate(path); err != nil {
			return fmt.Errorf("error reading --template %s, %w", path, err)
		}
	}
	switch f.name {
	case customColumns:
		f.columns, err = ParseColumns(text, o.NoHeaders)
		return err
	case customColumnsFile:
		f.columns, err = parseColumnsFile(text, o.NoHeaders)
		return err
	case jsonPath, jsonPathAsJSON, jsonPathFile:
		p, err := printers.NewJSONPathPrinter(text)
		if err != nil {
			return fmt.Errorf("error parsing jsonpath %s, %w", text, err)
		}
		p.AllowMissingKeys(!o.StrictKeys)
		p.EnableJSONOutput(f.name == jsonPathAsJSON)
		f.printer = p
		return nil
	}
	p, err := printers.NewGoTemplatePrinter([]byte(text))
	if err != nil {
		return fmt.Errorf("error parsing template %s, %w", text, err)
	}
	p.AllowMissingKeys(!o.StrictKeys)
	f.printer = p
	return nil
}

// maxTemplateBytes is the largest file of a template. A larger one is something else.
const maxTemplateBytes = 1 << 20

func readTemplate(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err //nolint:wrapcheck // the caller says what for, in kubectl's words
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxTemplateBytes+1))
	if err == nil && len(text) > maxTemplateBytes {
		err = fmt.Errorf("it has more than %d bytes, and is no template", maxTemplateBytes)
	}
	return string(text), err
}

// Name returns the format without its template.
func (f *Format) Name() string { return f.name }

// IsTable reports whether the format is a table that the server fills.
func (f *Format) IsTable() bool { return f.name == Table || f.name == Wide }

// IsDocument reports whether the format is JSON or YAML.
func (f *Format) IsDocument() bool { return f.name == JSON || f.name == YAML }

// Columns returns the custom columns, or nil for another format.
func (f *Format) Columns() *Columns { return f.columns }

// IsTemplate reports whether Print prints the format.
func (f *Format) IsTemplate() bool { return f.printer != nil }

// maxErrorBytes is how much of an error is returned. cli-runtime adds the whole document to it, which can be all objects of a
// fleet.
const maxErrorBytes = 1 << 10

// Print executes the template on one document: an object, or a List. Nothing is written if it fails, because half a
// line looks like a whole one to a script.
func (f *Format) Print(w io.Writer, document map[string]any) error {
	var b bytes.Buffer
	if err := f.printer.PrintObj(&unstructured.Unstructured{Object: document}, &b); err != nil {
		text, _, _ := strings.Cut(err.Error(), ". Printing more information")
		if len(text) > maxErrorBytes {
			text = strings.ToValidUTF8(text[:maxErrorBytes], "") + "…"
		}
		return vedette.Errorf(vedette.Invalid, "%s", strings.TrimSpace(text))
	}
	_, err := w.Write(b.Bytes())
	return err
}
