package wire_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/wire"
)

// forEachMessage calls f with an empty message of each type of the protocol.
func forEachMessage(t *testing.T, f func(t *testing.T, empty func() proto.Message)) {
	all := wire.File_vedette_proto.Messages()
	for i := range all.Len() {
		md := all.Get(i)
		t.Run(string(md.Name()), func(t *testing.T) {
			f(t, func() proto.Message { return newMessage(t, md) })
		})
	}
}

// newMessage returns an empty message of the generated type.
func newMessage(t *testing.T, md protoreflect.MessageDescriptor) proto.Message {
	mt, err := protoregistry.GlobalTypes.FindMessageByName(md.FullName())
	if err != nil {
		t.Fatal(err)
	}
	return mt.New().Interface()
}

// fill sets every string field, at any depth, to text. In a oneof it sets the case with
// the given number.
func fill(m protoreflect.Message, text string, depth, oneofCase int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if oneof := fd.ContainingOneof(); oneof != nil && !oneof.IsSynthetic() && oneof.Fields().Get(oneofCase%oneof.Fields().Len()) != fd {
			continue
		}
		switch {
		case fd.IsMap():
			m.Mutable(fd).Map().Set(protoreflect.ValueOfString(text).MapKey(), protoreflect.ValueOfString(text))
		case fd.Kind() == protoreflect.StringKind && fd.IsList():
			m.Mutable(fd).List().Append(protoreflect.ValueOfString(text))
		case fd.Kind() == protoreflect.StringKind:
			m.Set(fd, protoreflect.ValueOfString(text))
		case fd.Kind() == protoreflect.BytesKind && !fd.IsList():
			m.Set(fd, protoreflect.ValueOfBytes([]byte("\xffbytes\x00")))
		case fd.Kind() == protoreflect.MessageKind && depth > 0 && fd.IsList():
			fill(m.Mutable(fd).List().AppendMutable().Message(), text, depth-1, oneofCase)
		case fd.Kind() == protoreflect.MessageKind && depth > 0:
			fill(m.Mutable(fd).Message(), text, depth-1, oneofCase)
		}
	}
}

const maxOneofCases = 32 // more than any oneof has

// TestMarshalRepairsInvalidUTF8 encodes each message with invalid UTF-8 in each string.
// Everything but the invalid bytes must arrive.
func TestMarshalRepairsInvalidUTF8(t *testing.T) {
	forEachMessage(t, func(t *testing.T, empty func() proto.Message) {
		for oneofCase := range maxOneofCases {
			m, want := empty(), empty()
			fill(m.ProtoReflect(), "Acc\xe8s", 4, oneofCase)
			fill(want.ProtoReflect(), "Acc\uFFFDs", 4, oneofCase)
			b, err := wire.Marshal(m)
			if err != nil {
				t.Fatalf("encode: %v", err)
			}
			got := empty()
			if err := proto.Unmarshal(b, got); err != nil || !proto.Equal(got, want) {
				t.Fatalf("got %v, want %v: %v", got, want, err)
			}
			if data, err := wire.Codec().Marshal(m); err != nil || !proto.Equal(got, decode(t, data, empty())) {
				t.Fatalf("the codec encodes differently: %v", err)
			}
		}
	})
}

func decode(t *testing.T, data mem.BufferSlice, m proto.Message) proto.Message {
	if err := wire.Codec().Unmarshal(data, m); err != nil {
		t.Error(err)
	}
	return m
}

// TestUnmarshalRepairsInvalidUTF8 decodes messages of a peer that does not check its
// strings.
func TestUnmarshalRepairsInvalidUTF8(t *testing.T) {
	const placeholder = "Qplace~holderQ"
	forEachMessage(t, func(t *testing.T, empty func() proto.Message) {
		for oneofCase := range maxOneofCases {
			m := empty()
			fill(m.ProtoReflect(), placeholder, 4, oneofCase)
			b, err := proto.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			b = bytes.ReplaceAll(b, []byte(placeholder), []byte(strings.Replace(placeholder, "~", "\xe8", 1)))
			got, want := empty(), empty()
			fill(want.ProtoReflect(), strings.Replace(placeholder, "~", "\uFFFD", 1), 4, oneofCase)
			if err := wire.Unmarshal(b, got); err != nil || !proto.Equal(got, want) {
				t.Fatalf("got %v, %v; want %v", got, err, want)
			}
			if viaCodec := decode(t, mem.BufferSlice{mem.SliceBuffer(b)}, empty()); !proto.Equal(viaCodec, want) {
				t.Fatalf("the codec: got %v, want %v", viaCodec, want)
			}
		}
	})
}

// TestUserTextsHaveNoControlCharacters checks every field whose name says that it is a
// user text.
func TestUserTextsHaveNoControlCharacters(t *testing.T) {
	userTextFields := map[protoreflect.Name]bool{"message": true, "reason": true, "broke_off": true, "warnings": true,
		"examples": true, "names": true, "refusal": true}
	forEachMessage(t, func(t *testing.T, empty func() proto.Message) {
		for oneofCase := range maxOneofCases {
			m := empty()
			fill(m.ProtoReflect(), "\x1b[31m\x00", 4, oneofCase)
			b, err := wire.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			got, received := empty(), empty()
			if err := proto.Unmarshal(b, got); err != nil {
				t.Fatal(err)
			}
			b, err = proto.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			if err := wire.Unmarshal(b, received); err != nil {
				t.Fatal(err)
			}
			for _, m := range []proto.Message{got, received} {
				if !isTopLevel(m) {
					continue
				}
				walkStrings(m.ProtoReflect(), func(fd protoreflect.FieldDescriptor, text string) {
					if userTextFields[fd.Name()] && strings.ContainsAny(text, "\x1b\x00") {
						t.Errorf("%s has control characters: %q", fd.FullName(), text)
					}
				})
			}
		}
	})
}

// isTopLevel reports whether a message is sent on its own.
func isTopLevel(m proto.Message) bool {
	switch m.(type) {
	case *wire.AgentMessage, *wire.ServerMessage, *wire.OperationsUp, *wire.OperationsDown, *wire.AnswerPiece, *wire.AnswerEnd, *wire.Record, *wire.Outcome:
		return true
	}
	return false
}

func walkStrings(m protoreflect.Message, f func(protoreflect.FieldDescriptor, string)) {
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		visit := func(v protoreflect.Value) {
			switch {
			case fd.Kind() == protoreflect.StringKind:
				f(fd, v.String())
			case fd.Kind() == protoreflect.MessageKind:
				walkStrings(v.Message(), f)
			}
		}
		switch {
		case fd.IsMap():
		case fd.IsList():
			for i := range v.List().Len() {
				visit(v.List().Get(i))
			}
		default:
			visit(v)
		}
		return true
	})
}

// TestLongTextsAreTruncated checks that a user text cannot fill a message.
func TestLongTextsAreTruncated(t *testing.T) {
	long := strings.Repeat("ä", 1<<20)
	b, err := wire.Marshal(&wire.AgentMessage{Message: &wire.AgentMessage_AccountError{AccountError: &wire.AccountError{Account: "prod", Message: long}}})
	if err != nil || len(b) > 10<<10 {
		t.Errorf("account error: got %d bytes, %v; want a short message", len(b), err)
	}
	var m wire.AgentMessage
	if err := wire.Unmarshal(b, &m); err != nil || !utf8.ValidString(m.GetAccountError().GetMessage()) || m.GetAccountError().GetAccount() != "prod" {
		t.Errorf("account error: got %.100v, %v", &m, err)
	}
}

// TestMessageWithTooManyFieldsIsRejected checks that a message that is small on the
// wire and huge in memory is rejected before it is decoded.
func TestMessageWithTooManyFieldsIsRejected(t *testing.T) {
	feeds := bytes.Repeat([]byte{0x0a, 0x00}, 8<<20) // empty DeclaredFeeds
	record := protowire.AppendBytes(protowire.AppendTag(nil, 4, protowire.BytesType), feeds)
	var err error
	allocated := testing.AllocsPerRun(1, func() { err = wire.Unmarshal(record, &wire.Record{}) })
	if err == nil || allocated > 1000 {
		t.Errorf("8 million feeds: got %.0f allocations, %v; want an error before decoding", allocated, err)
	}
	keys := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), bytes.Repeat([]byte{0x32, 0x00}, 500_000)) // of an outcome
	allocated = testing.AllocsPerRun(1, func() { err = wire.Unmarshal(keys, &wire.OperationsUp{}) })
	if err == nil || allocated > 1000 {
		t.Errorf("500,000 keys: got %.0f allocations, %v; want an error before decoding", allocated, err)
	}
}

// TestLargestDeclarationFits checks that the largest declaration that a store accepts
// can be sent.
func TestLargestDeclarationFits(t *testing.T) {
	declare, marks := &wire.Declare{}, &wire.Assignment{}
	for i := range 50_000 {
		feed := &wire.Feed{Kind: &wire.Kind{Group: "example.com", Name: "Widget"}, Namespace: fmt.Sprint("namespace-", i)}
		declare.Feeds = append(declare.Feeds, &wire.DeclaredFeed{Feed: feed, Version: "v1", Plural: "widgets", Singular: "widget", ShortNames: []string{"w", "wi"}, Namespaced: true})
		marks.Marks = append(marks.Marks, &wire.Mark{Feed: feed, ResourceVersion: fmt.Sprint(i)})
	}
	for _, m := range []proto.Message{
		&wire.Record{Account: "prod", Step: &wire.Record_Declare{Declare: declare}},
		&wire.ServerMessage{Message: &wire.ServerMessage_Assignment{Assignment: marks}},
	} {
		b, err := wire.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		got := m.ProtoReflect().New().Interface()
		if err := wire.Unmarshal(b, got); err != nil || !proto.Equal(got, m) {
			t.Errorf("%d bytes of a %s: %v", len(b), m.ProtoReflect().Descriptor().Name(), err)
		}
	}
}

// TestInvalidOperationNamesAreRejected checks that no operation is sent with a repaired
// name, which would be the name of another object.
func TestInvalidOperationNamesAreRejected(t *testing.T) {
	target := vedette.Target{Kind: "pod", Namespace: "default", Name: "\xff"}
	for _, args := range []vedette.Args{
		vedette.GetArgs{Target: target}, vedette.DeleteArgs{Target: target}, vedette.LogsArgs{Target: target}, vedette.ListArgs{LabelSelector: "\xff"},
		vedette.PruneArgs{Kinds: []string{"v1/Pod", "\xff"}}, vedette.ApplyArgs{Namespace: "\xff"}, vedette.MetricsArgs{Name: "\xff"},
	} {
		for _, dryRun := range []bool{false, true} {
			if _, err := wire.FromOperation(vedette.Operation{ID: "op1", Account: "prod", Args: args, DryRun: dryRun}, time.Now()); vedette.KindOf(err) != vedette.Invalid {
				t.Errorf("%s (dry run: %v) of a name that is not UTF-8: got %v, want an error of kind invalid", args.Verb(), dryRun, err)
			}
		}
	}
	if _, err := wire.FromOperation(vedette.Operation{ID: "op1", Args: vedette.ApplyArgs{Manifest: []byte("\xff")}}, time.Now()); err != nil {
		t.Errorf("a manifest may be any bytes: %v", err)
	}
}

// TestInvalidUTF8InObjectsIsRepaired checks that the hand-written encoding of objects
// is valid even for servers that do not repair strings.
func TestInvalidUTF8InObjectsIsRepaired(t *testing.T) {
	object := vedette.Object{
		Key: vedette.Key{Kind: vedette.Kind{Group: "g\xff", Name: "K\xff"}, Namespace: "n\xff", Name: "a\xff"}, UID: "\xff", ResourceVersion: "1\xff",
		APIVersion: "\xff", Owner: vedette.Owner{Kind: vedette.Kind{Name: "\xff"}, Name: "\xff", UID: "\xff"},
		Labels: map[string]string{"\xff": "a", "b": "\xff"}, Annotations: map[string]string{"c": "\xff"}, Body: []byte("{\xff}"),
	}
	b := wire.AppendHeader(nil, "prod\xff", 7, vedette.Feed{Kind: object.Kind, Namespace: "n\xff"})
	var rec wire.Record
	if err := proto.Unmarshal(append(b, wire.EncodeUpsert(object, true)...), &rec); err != nil {
		t.Fatal(err)
	}
	u := rec.GetUpsert()
	if u.GetName() != "a\uFFFD" || u.GetLabels()["b"] != "\uFFFD" || string(u.GetBody()) != "{\xff}" || rec.GetFeed().GetKind().GetGroup() != "g\uFFFD" || !u.GetLive() {
		t.Errorf("got the object %v", &rec)
	}
	if object.Labels["b"] != "\xff" {
		t.Error("EncodeUpsert modified the caller's object")
	}
}
