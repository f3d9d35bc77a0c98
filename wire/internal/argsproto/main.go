// Command argsproto writes the messages for the arguments of operations into
// vedette.proto, from the types and comments in the root package's operation.go. It runs
// in the directory wire, by go generate.
package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
)

const (
	protoFile  = "vedette.proto"
	sourceFile = "../operation.go"
	beginMark  = "// operation.go by go generate ./wire.\n"
	endMark    = "// (end of the generated messages)\n"
)

func main() {
	if err := generate(); err != nil {
		log.Fatal(err)
	}
}

func generate() error {
	proto, err := os.ReadFile(protoFile)
	if err != nil {
		return err
	}
	comments, err := readComments()
	if err != nil {
		return err
	}
	before, rest, ok := bytes.Cut(proto, []byte(beginMark))
	_, after, ok2 := bytes.Cut(rest, []byte(endMark))
	if !ok || !ok2 {
		return fmt.Errorf("%s has no generated part: the marks are missing", protoFile)
	}
	var out bytes.Buffer
	out.Write(before)
	out.WriteString(beginMark + "\n")
	writeMessage(&out, "Target", reflect.TypeFor[vedette.Target](), comments)
	for _, spec := range vedette.Verbs() {
		name, err := messageOf(spec.Verb, proto)
		if err != nil {
			return err
		}
		if name != "Target" {
			writeMessage(&out, name, reflect.TypeOf(spec.Args), comments)
		}
	}
	out.WriteString(endMark)
	out.Write(after)
	return os.WriteFile(protoFile, out.Bytes(), 0o600)
}

// messageOf returns the message of a verb's case in Operation. The cases are written by
// hand, because a new verb is a decision about old agents.
func messageOf(verb vedette.Verb, proto []byte) (string, error) {
	_, operation, _ := bytes.Cut(proto, []byte("\nmessage Operation {\n"))
	match := regexp.MustCompile(`(?m)^    (\w+) ` + string(verb) + ` = \d+;`).FindSubmatch(operation)
	if match == nil {
		return "", fmt.Errorf("%s: add a case for the verb %s to the oneof of Operation", protoFile, verb)
	}
	return string(match[1]), nil
}

type field struct {
	number        int
	kind, name    string
	doc, trailing string
}

func writeMessage(out *bytes.Buffer, name string, t reflect.Type, comments map[string]*ast.Field) {
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			fields = append(fields, field{number: 1, kind: "Target", name: "target"})
			continue
		}
		number, wireName, _ := strings.Cut(f.Tag.Get("wire"), ",")
		n, err := strconv.Atoi(number)
		if err != nil {
			log.Fatalf("%s.%s has no number: add a wire tag with a number that no field of the message ever had", t, f.Name)
		}
		c := comments[t.Name()+"."+f.Name]
		fields = append(fields, field{number: n, kind: protoType(f.Type), name: cmp.Or(wireName, snakeCase(f.Name)), doc: c.Doc.Text(),
			trailing: c.Comment.Text()})
	}
	slices.SortFunc(fields, func(a, b field) int { return a.number - b.number })
	if len(fields) == 0 {
		fmt.Fprintf(out, "message %s {}\n\n", name)
		return
	}
	fmt.Fprintf(out, "message %s {\n", name)
	for _, f := range fields {
		for line := range strings.Lines(f.doc) {
			fmt.Fprintf(out, "  // %s", line)
		}
		fmt.Fprintf(out, "  %s %s = %d;", f.kind, f.name, f.number)
		if f.trailing != "" {
			fmt.Fprintf(out, " // %s", strings.TrimSpace(f.trailing))
		}
		out.WriteString("\n")
	}
	out.WriteString("}\n\n")
}

func protoType(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return "int64"
	case t == reflect.TypeFor[[]byte]():
		return "bytes"
	case t.Kind() == reflect.Slice:
		return "repeated " + protoType(t.Elem())
	case t.Kind() == reflect.Pointer:
		return "optional " + protoType(t.Elem())
	case t.Kind() == reflect.String:
		return "string"
	case t.Kind() == reflect.Bool:
		return "bool"
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
		return "int64"
	}
	log.Fatalf("there is no field of type %s in operations yet: argsproto, wire and operationjson must learn it", t)
	return ""
}

var wordStart = regexp.MustCompile(`([a-z])([A-Z])|([A-Z])([A-Z][a-z])`)

// snakeCase returns missing_ok for MissingOK.
func snakeCase(name string) string {
	return strings.ToLower(wordStart.ReplaceAllString(name, "${1}${3}_${2}${4}"))
}

// readComments returns the fields of all struct types of operation.go, by "Type.Field".
func readComments() (map[string]*ast.Field, error) {
	file, err := parser.ParseFile(token.NewFileSet(), sourceFile, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	fields := map[string]*ast.Field{}
	for _, declaration := range file.Decls {
		types, ok := declaration.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range types.Specs {
			s, ok := spec.(*ast.TypeSpec)
			if !ok {
				continue
			}
			structure, ok := s.Type.(*ast.StructType)
			if !ok {
				continue
			}
			for _, f := range structure.Fields.List {
				for _, name := range f.Names {
					fields[s.Name.Name+"."+name.Name] = f
				}
			}
		}
	}
	return fields, nil
}
