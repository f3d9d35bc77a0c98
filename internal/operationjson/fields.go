// Package operationjson encodes and decodes operations as the REST API takes them:
// one flat JSON object with the account, the verb and the fields of the verb's
// arguments. The types of package vedette define the fields; the server and the
// client share this package, so that they cannot differ.
package operationjson

import (
	"reflect"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
)

// Request is an operation before the server has accepted it.
type Request struct {
	Account vedette.AccountName
	ID      string // a ULID; empty to let the server choose
	Timeout string // a duration, for example "30s"; empty for the server's default
	DryRun  bool
	Args    vedette.Args
}

// envelope holds the fields of a request that do not depend on the verb.
type envelope struct {
	Account vedette.AccountName `rest:"account"`
	Verb    vedette.Verb        `rest:"verb"`
	ID      string              `rest:"id"`
	Timeout string              `rest:"timeout"`
	DryRun  bool                `rest:"dryRun"`
}

const dryRunField = "dryRun"

// restName returns the name of a struct field in the REST API; false if it has none.
func restName(f reflect.StructField) (string, bool) {
	name := f.Tag.Get("rest")
	return name, name != "" && name != "-"
}

// fieldsOf returns the named fields of a struct type, including those of embedded
// structs.
func fieldsOf(t reflect.Type) []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool {
		_, ok := restName(f)
		return !ok
	})
}

// argumentFields returns the fields of a verb's arguments that a request may set.
func argumentFields(spec vedette.VerbSpec) []reflect.StructField {
	return slices.DeleteFunc(fieldsOf(reflect.TypeOf(spec.Args)), func(f reflect.StructField) bool {
		name, _ := restName(f)
		return spec.Excludes(name)
	})
}

// Fields returns the names of all fields that a request with this verb may set.
func Fields(spec vedette.VerbSpec) []string {
	var names []string
	for _, f := range fieldsOf(reflect.TypeFor[envelope]()) {
		if name, _ := restName(f); name != dryRunField || !spec.ReadOnly {
			names = append(names, name)
		}
	}
	for _, f := range argumentFields(spec) {
		name, _ := restName(f)
		names = append(names, name)
	}
	return names
}

// Verbs returns the sorted names of the verbs that a request may have.
func Verbs() []string {
	var names []string
	for _, spec := range vedette.Verbs() {
		if !spec.Streams {
			names = append(names, string(spec.Verb))
		}
	}
	slices.Sort(names)
	return names
}

func isBytes(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
}

func join(names []string) string { return strings.Join(names, ", ") }
