package operationjson_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/operationjson"
	"github.com/vedette-io/vedette/wire"
)

// fill sets every field that a request may set to something other than its zero value.
func fill(t *testing.T, spec vedette.VerbSpec) vedette.Args {
	t.Helper()
	args := reflect.New(reflect.TypeOf(spec.Args)).Elem()
	for i, f := range reflect.VisibleFields(args.Type()) {
		name := f.Tag.Get("rest")
		if f.Anonymous || name == "-" || spec.Excludes(name) {
			continue
		}
		if name == "" {
			t.Errorf("%s.%s has no rest tag: set its name in the REST API, or \"-\"", args.Type(), f.Name)
		}
		setField(t, args.FieldByIndex(f.Index), i+1)
	}
	return args.Interface().(vedette.Args)
}

func setField(t *testing.T, v reflect.Value, n int) {
	t.Helper()
	switch value := v.Addr().Interface().(type) {
	case *[]byte:
		*value = fmt.Appendf(nil, `{"n":%d}`, n)
		return
	case *[]string:
		*value = []string{"a", fmt.Sprint(n)}
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint("text-", n))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		setField(t, v.Elem(), n)
	default:
		t.Errorf("a field of type %s: operationjson, wire and this test must learn it", v.Type())
	}
}

// TestNoFieldIsForgotten sends every verb with every field from a client to a server, to
// an agent, and compares what arrives.
func TestNoFieldIsForgotten(t *testing.T) {
	for _, spec := range vedette.Verbs() {
		if spec.Streams {
			continue
		}
		want := operationjson.Request{Account: "prod", Timeout: "5s", DryRun: !spec.ReadOnly, Args: fill(t, spec)}
		body, err := operationjson.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range operationjson.Fields(spec) {
			if !strings.Contains(string(body), `"`+field+`":`) && field != "id" {
				t.Errorf("%s: the client does not send %s: %s", spec.Verb, field, body)
			}
		}
		got, err := operationjson.Unmarshal(body)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the server reads\ngot  %#v, %v\nwant %#v", spec.Verb, got, err, want)
			continue
		}
		if received := sendToAgent(t, got); !reflect.DeepEqual(received.Args, want.Args) || received.DryRun != want.DryRun {
			t.Errorf("%s: the agent reads\ngot  %#v\nwant %#v", spec.Verb, received, want)
		}
	}
}

func sendToAgent(t *testing.T, r operationjson.Request) vedette.Operation {
	t.Helper()
	m, err := wire.FromOperation(vedette.Operation{Account: r.Account, DryRun: r.DryRun, Args: r.Args}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var received wire.Operation
	if err := proto.Unmarshal(b, &received); err != nil {
		t.Fatal(err)
	}
	return wire.ToOperation(&received, time.Now())
}

// TestSpecsNameFields checks that the table of verbs names only fields that exist.
func TestSpecsNameFields(t *testing.T) {
	for _, spec := range vedette.Verbs() {
		fields := operationjson.Fields(spec)
		for _, name := range spec.Required {
			if !slices.Contains(fields, name) {
				t.Errorf("the verb %s requires %s, which is not one of its fields %v", spec.Verb, name, fields)
			}
		}
		for _, name := range spec.Excluded {
			if !slices.Contains(operationjson.Fields(vedette.VerbSpec{Args: spec.Args}), name) {
				t.Errorf("the verb %s excludes %s, which %T does not have", spec.Verb, name, spec.Args)
			}
		}
		if got := slices.Contains(fields, "dryRun"); got == spec.ReadOnly {
			t.Errorf("the verb %s (read-only: %v): takes dryRun is %v", spec.Verb, spec.ReadOnly, got)
		}
	}
}

// TestDocumentsAreEmbeddedUnchanged checks how manifests and patches are embedded.
func TestDocumentsAreEmbeddedUnchanged(t *testing.T) {
	for _, tt := range []struct{ document, want string }{
		{`{"a":1}`, `{"a":1}`},
		{`[1]`, `[1]`},
		{"a: 1\n", `"a: 1\n"`},
		{`"text"`, `"\"text\""`},
		{`{"broken"`, `"{\"broken\""`},
	} {
		request := operationjson.Request{Account: "prod", Args: vedette.PatchArgs{Target: vedette.Target{Kind: "pod", Name: "p"}, Patch: []byte(tt.document)}}
		body, err := operationjson.Marshal(request)
		if err != nil || !strings.Contains(string(body), `"patch":`+tt.want+`,`) {
			t.Errorf("%s: got %s, %v; want a patch of %s", tt.document, body, err, tt.want)
		}
		if got, err := operationjson.Unmarshal(body); err != nil || !reflect.DeepEqual(got, request) {
			t.Errorf("%s: got %+v, %v", tt.document, got, err)
		}
	}
}

func TestMarshalRejectsUnknownArgs(t *testing.T) {
	for _, args := range []vedette.Args{nil, unknownArgs{}} {
		if _, err := operationjson.Marshal(operationjson.Request{Args: args}); vedette.KindOf(err) != vedette.Invalid {
			t.Errorf("%T: got %v, want an error of kind invalid", args, err)
		}
	}
}

type unknownArgs struct{}

func (unknownArgs) Verb() vedette.Verb { return "unknown" }

// FuzzUnmarshal checks that a decoded request can be encoded and decoded again.
func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte(`{"account":"prod","verb":"scale","kind":"deploy","name":"web","replicas":0}`))
	f.Add([]byte(`{"account":"prod","verb":"patch","kind":"deploy","name":"web","patch":"a: b"}`))
	f.Add([]byte(`{"account":"prod","verb":"prune","all":true,"keep":["u"]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		request, err := operationjson.Unmarshal(body)
		if err != nil {
			if vedette.KindOf(err) != vedette.Invalid {
				t.Errorf("%q: %v", body, err)
			}
			return
		}
		again, err := operationjson.Marshal(request)
		if err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		if _, err := operationjson.Unmarshal(again); err != nil {
			t.Errorf("%q became %q: %v", body, again, err)
		}
	})
}
