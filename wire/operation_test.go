package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/vedette-io/vedette"
)

// fillFields sets every field of a value to something other than its zero value.
func fillFields(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Struct:
		if t, ok := v.Addr().Interface().(*time.Time); ok {
			*t = time.Unix(int64(*n), 5).UTC()
			return
		}
		for i := range v.NumField() {
			fillFields(v.Field(i), n)
		}
	case reflect.String:
		v.SetString(string(rune('a' + *n%26)))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Slice:
		if names, ok := v.Addr().Interface().(*[]string); ok {
			*names = []string{"a", string(rune('a' + *n%26))}
			return
		}
		v.SetBytes([]byte{byte(*n)})
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillFields(v.Elem(), n)
	}
}

// TestVerbsMatchProto checks that every field of the arguments is in vedette.proto, and
// the other way round. Without it a forgotten field would be lost on the way to the
// agent.
func TestVerbsMatchProto(t *testing.T) {
	cases := (&Operation{}).ProtoReflect().Descriptor().Oneofs().ByName("verb").Fields()
	specs := map[string]bool{dryRunCase: true, deleteChosenCase: true}
	for _, spec := range vedette.Verbs() {
		specs[string(spec.Verb)] = true
		codec, err := newArgsCodec(spec, cases.ByName(protoreflect.Name(spec.Verb)))
		if err != nil {
			t.Error(err)
			continue
		}
		used := map[protoreflect.Name]bool{targetField: true}
		for _, f := range codec.fields {
			used[f.wire.Name()] = true
		}
		for i := range codec.verb.Message().Fields().Len() {
			if name := codec.verb.Message().Fields().Get(i).Name(); !used[name] {
				t.Errorf("vedette.proto: %s.%s is not a field of vedette.%s", codec.verb.Message().Name(), name, codec.goType.Name())
			}
		}
	}
	for i := range cases.Len() {
		if name := string(cases.Get(i).Name()); !specs[name] {
			t.Errorf("vedette.proto: the case %s of Operation is not in vedette.Verbs", name)
		}
	}
}

// TestOperationRoundTrip encodes and decodes every verb with every field set.
func TestOperationRoundTrip(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for _, spec := range vedette.Verbs() {
		filled := reflect.New(reflect.TypeOf(spec.Args)).Elem()
		n := 0
		fillFields(filled, &n)
		for _, args := range []vedette.Args{spec.Args, filled.Interface().(vedette.Args)} {
			for _, dryRun := range []bool{false, true} {
				op := vedette.Operation{ID: "01J", Account: "prod", Deadline: now.Add(time.Second), Args: args, DryRun: dryRun, RequestID: "r1", TraceParent: "00-1-2-01",
					Cluster: vedette.Cluster{UID: "u", Host: "https://a", Fingerprint: "AA", Version: "v1.36.3"}}
				var decoded Operation
				if err := proto.Unmarshal(mustEncode(t, op, now), &decoded); err != nil {
					t.Fatal(err)
				}
				if got := ToOperation(&decoded, now); !reflect.DeepEqual(got, op) {
					t.Errorf("%s:\ngot  %#v\nwant %#v", spec.Verb, got, op)
				}
			}
		}
	}
}

func TestUnknownArgsAreNotEncoded(t *testing.T) {
	for _, args := range []vedette.Args{nil, unknownArgs{}, &vedette.GetArgs{}} {
		if _, err := FromOperation(vedette.Operation{Args: args}, time.Now()); err == nil {
			t.Errorf("FromOperation of %T: got no error", args)
		}
	}
}

type unknownArgs struct{}

func (unknownArgs) Verb() vedette.Verb { return "unknown" }

func mustEncode(t *testing.T, op vedette.Operation, now time.Time) []byte {
	t.Helper()
	m, err := FromOperation(op, now)
	if err != nil {
		t.Fatal(err)
	}
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestOperationOfOlderServer checks that an operation without a cluster has none.
func TestOperationOfOlderServer(t *testing.T) {
	op := vedette.Operation{ID: "01J", Account: "prod", Args: vedette.DiscoverArgs{}}
	encoded, err := FromOperation(op, time.Now())
	if err != nil || encoded.Cluster != nil {
		t.Errorf("got cluster %v, error %v", encoded.GetCluster(), err)
	}
	if got := ToOperation(encoded, time.Now()); !reflect.DeepEqual(got, op) {
		t.Errorf("got %#v, want %#v", got, op)
	}
}

// TestRequestIDIsCleaned checks that the id of a request cannot forge lines of an agent's log.
func TestRequestIDIsCleaned(t *testing.T) {
	got := ToOperation(&Operation{Id: "01J", RequestId: "a\x00" + strings.Repeat("b", 1<<20)}, time.Now()).RequestID
	if len(got) > maxRequestID || strings.ContainsRune(got, 0) || !strings.HasPrefix(got, "a bbb") {
		t.Errorf("got %d bytes: %.50q", len(got), got)
	}
}

// lastFirstReleaseField is the highest field number of Operation in the first release.
const lastFirstReleaseField = 27

// firstReleaseOperation returns an Operation with the fields of the first release.
func firstReleaseOperation(t *testing.T) *dynamicpb.Message {
	t.Helper()
	file := protodesc.ToFileDescriptorProto(File_vedette_proto)
	for _, m := range file.MessageType {
		if m.GetName() == "Operation" {
			m.Field = slices.DeleteFunc(m.Field, func(f *descriptorpb.FieldDescriptorProto) bool { return f.GetNumber() > lastFirstReleaseField })
		}
	}
	descriptor, err := protodesc.NewFile(file, protoregistry.GlobalFiles)
	if err != nil {
		t.Fatal(err)
	}
	return dynamicpb.NewMessage(descriptor.Messages().ByName("Operation"))
}

// TestFirstReleaseAgentIgnoresNewVerbs checks that an agent of the first release finds
// no verb in an operation that it would misunderstand, so that it does nothing. It
// knows only the last one.
func TestFirstReleaseAgentIgnoresNewVerbs(t *testing.T) {
	pod := vedette.Target{Kind: "pod", Namespace: "shop", Name: "web-0"}
	for _, tt := range []struct {
		op    vedette.Operation
		known bool
	}{
		{vedette.Operation{DryRun: true, Args: vedette.ApplyArgs{Manifest: []byte("{}")}}, false},
		{vedette.Operation{DryRun: true, Args: vedette.DeleteArgs{Target: pod}}, false},
		{vedette.Operation{DryRun: true, Args: vedette.ScaleArgs{Target: pod}}, false},
		{vedette.Operation{Args: vedette.DeleteArgs{Target: pod, FieldSelector: "a=b", LabelSelector: "a=b"}}, false},
		{vedette.Operation{Args: vedette.DeleteArgs{Target: pod, AllNamespaces: true, LabelSelector: "a=b"}}, false},
		{vedette.Operation{Args: vedette.DeleteArgs{Target: pod, All: true}}, false},
		{vedette.Operation{Args: vedette.PruneArgs{All: true}}, false},
		{vedette.Operation{Args: vedette.DeleteArgs{Target: pod, LabelSelector: "a=b"}}, true},
	} {
		tt.op.RequestID, tt.op.TraceParent = "r1", "00-1-2-01" // which it ignores
		decoded := firstReleaseOperation(t)
		if err := proto.Unmarshal(mustEncode(t, tt.op, time.Now()), decoded); err != nil {
			t.Fatal(err)
		}
		if verb := decoded.WhichOneof(decoded.Descriptor().Oneofs().ByName("verb")); (verb != nil) != tt.known {
			t.Errorf("%+v: got the verb %v, want a known verb: %v", tt.op, verb, tt.known)
		}
	}
}

// TestNestedDryRunHasNoArgs checks that invalid dry runs have no arguments.
func TestNestedDryRunHasNoArgs(t *testing.T) {
	get := &Operation{Verb: &Operation_Get{&Target{}}}
	nested := &Operation{Verb: &Operation_DryRun{&DryRun{Operation: get}}}
	nestedTwice := &Operation{Verb: &Operation_DryRun{&DryRun{Operation: nested}}}
	for _, o := range []*Operation{nestedTwice, {Verb: &Operation_DryRun{}}, {Verb: &Operation_DryRun{&DryRun{}}}} {
		if op := ToOperation(o, time.Now()); op.Args != nil {
			t.Errorf("%v: got %+v, want no arguments", o, op)
		}
	}
}

func TestUnknownVerbHasNoArgs(t *testing.T) {
	if op := ToOperation(&Operation{Id: "01J"}, time.Now()); op.Args != nil {
		t.Errorf("unknown verb: got %T, want no arguments", op.Args)
	}
}

func TestOutcomeRoundTrip(t *testing.T) {
	object := vedette.Object{Key: vedette.Key{Kind: vedette.Kind{Group: "apps", Name: "Deployment"}, Namespace: "n", Name: "web"}, UID: "u", ResourceVersion: "7",
		APIVersion: "apps/v1", Created: 5, Owner: vedette.Owner{Kind: vedette.Kind{Name: "Node"}, Name: "o", UID: "ou"},
		Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}, Summary: []byte(`{"x":1}`), Body: []byte(`{"kind":"Deployment"}`)}
	for _, out := range []vedette.Outcome{
		{ID: "01J", State: vedette.Done, Status: 201, Keys: []vedette.Key{object.Key}, CacheObject: &object, Objects: []json.RawMessage{object.Body}},
		{ID: "01J", State: vedette.Failed, Status: 409, Reason: "Conflict", Message: "no", UIDs: []string{"u"}, Objects: []json.RawMessage{json.RawMessage(`{}`), json.RawMessage(`[]`)}},
		{ID: "01J", State: vedette.Done, Status: 200, Unchanged: true},
		{ID: "01J", State: vedette.Done, Status: 200, Absent: &vedette.Absence{Key: object.Key, Version: "12"}},
		{ID: "01J", State: vedette.Done, Status: 200, Awaited: &vedette.ObjectVersion{Key: object.Key, Version: "12"}},
		{ID: "01J", State: vedette.Failed, Warnings: []string{"v1 Endpoints is deprecated", ""}},
		{ID: "01J", State: vedette.Lost, Result: json.RawMessage(`{"a":1}`)},
	} {
		b, err := proto.Marshal(FromOutcome(out))
		if err != nil {
			t.Fatal(err)
		}
		var decoded Outcome
		if err := proto.Unmarshal(b, &decoded); err != nil {
			t.Fatal(err)
		}
		if got := ToOutcome(&decoded); !reflect.DeepEqual(got, out) {
			t.Errorf("got  %#v\nwant %#v", got, out)
		}
	}
}

func TestSplitAndJoin(t *testing.T) {
	for _, size := range []int{0, 10, MaxPiece, MaxPiece + 1, 3 * MaxPiece, 5_000_001} {
		m := &OperationsDown{Message: &OperationsDown_Operation{&Operation{Id: "01J", Verb: &Operation_Apply{&Apply{Manifest: bytes.Repeat([]byte("x"), size)}}}}}
		parts, err := Split(m)
		if err != nil {
			t.Fatal(err)
		}
		var j Joiner
		var got *OperationsDown
		for i, part := range parts {
			if proto.Size(part) > MaxPiece+64 {
				t.Fatalf("got a part of %d bytes, more than MaxPiece", proto.Size(part))
			}
			got, err = j.Join(part)
			if err != nil || (got == nil) != (i < len(parts)-1) {
				t.Fatalf("part %d of %d: %v, %v", i+1, len(parts), got != nil, err)
			}
		}
		if !proto.Equal(got, m) {
			t.Errorf("a manifest of %d bytes was changed", size)
		}
	}
}

// roundTripAnswer returns what a reader reads of what write writes.
func roundTripAnswer(t *testing.T, cause error, write func(w *AnswerWriter)) ([]byte, error) {
	t.Helper()
	var sent []*AnswerPiece
	w := NewAnswerWriter(&AnswerPiece{Operation: "01J"}, func(p *AnswerPiece) error {
		if len(p.GetZstd()) > MaxPiece {
			t.Errorf("got a piece of %d bytes, more than MaxPiece", len(p.GetZstd()))
		}
		sent = append(sent, proto.Clone(p).(*AnswerPiece))
		return nil
	})
	write(w)
	if err := w.Close(cause); err != nil {
		t.Fatal(err)
	}
	if sent[0].GetOperation() != "01J" {
		t.Fatal("the first piece does not identify the operation")
	}
	i := 0
	r, err := NewAnswerReader(sent[0], func() (*AnswerPiece, error) {
		i++
		if i < len(sent) {
			return sent[i], nil
		}
		return nil, io.EOF
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	return io.ReadAll(r)
}

func TestAnswerRoundTrip(t *testing.T) {
	random := make([]byte, 2_000_000)
	rand.NewChaCha8([32]byte{1}).Read(random)
	for _, text := range [][]byte{nil, []byte("a line\n"), bytes.Repeat([]byte("the same line again\n"), 500_000), random} {
		got, err := roundTripAnswer(t, nil, func(w *AnswerWriter) { w.Write(text) })
		if err != nil || !bytes.Equal(got, text) {
			t.Errorf("wrote %d bytes, read %d: %v", len(text), len(got), err)
		}
	}
	got, err := roundTripAnswer(t, errors.New("the kubelet hung up"), func(w *AnswerWriter) {
		w.Write([]byte("one\n"))
		w.Flush()
		w.Write([]byte("two\n"))
	})
	if string(got) != "one\ntwo\n" || !errors.Is(err, ErrIncompleteAnswer) {
		t.Errorf("got %q and %v", got, err)
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte("x"), []byte{})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		rest := []*AnswerPiece{{Zstd: b}}
		r, err := NewAnswerReader(&AnswerPiece{Zstd: a}, func() (*AnswerPiece, error) {
			if len(rest) == 0 {
				return nil, io.EOF
			}
			p := rest[0]
			rest = nil
			return p, nil
		})
		if err != nil {
			return
		}
		defer r.Close()
		_, _ = io.Copy(io.Discard, io.LimitReader(r, 1<<20))
	})
}
