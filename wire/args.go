package wire

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/vedette-io/vedette"
)

// argsCodec converts the arguments of one verb. It is derived from their Go type and from
// the generated message, so that no field is listed by hand.
type argsCodec struct {
	verb   protoreflect.FieldDescriptor // the case of Operation's oneof
	goType reflect.Type
	fields []fieldCodec
}

type fieldCodec struct {
	index    []int
	inTarget bool // a field of the message's target, not of the message itself
	wire     protoreflect.FieldDescriptor
}

// Cases of Operation's oneof that are not verbs of their own.
const (
	deleteChosenCase = "delete_chosen"
	dryRunCase       = "dry_run"
	targetField      = "target"
)

type argsCodecs struct {
	byType map[reflect.Type]*argsCodec
	byCase map[protoreflect.FieldNumber]*argsCodec
	oneof  protoreflect.OneofDescriptor
	// deleteChosen is the case for deletes that agents of the first release would
	// misunderstand.
	deleteChosen protoreflect.FieldDescriptor
}

// codecs are built at first use, because generated descriptors are not ready before
// the package's init. They fail only if vedette.proto and the types disagree, which
// TestVerbsMatchProto excludes.
var codecs = sync.OnceValue(func() argsCodecs {
	cases := (&Operation{}).ProtoReflect().Descriptor().Oneofs().ByName("verb")
	c := argsCodecs{byType: map[reflect.Type]*argsCodec{}, byCase: map[protoreflect.FieldNumber]*argsCodec{},
		oneof: cases, deleteChosen: cases.Fields().ByName(deleteChosenCase)}
	for _, spec := range vedette.Verbs() {
		codec, err := newArgsCodec(spec, cases.Fields().ByName(protoreflect.Name(spec.Verb)))
		if err != nil {
			panic(err)
		}
		c.byType[codec.goType], c.byCase[codec.verb.Number()] = codec, codec
	}
	c.byCase[c.deleteChosen.Number()] = c.byType[reflect.TypeFor[vedette.DeleteArgs]()]
	return c
})

func newArgsCodec(spec vedette.VerbSpec, verb protoreflect.FieldDescriptor) (*argsCodec, error) {
	if verb == nil {
		return nil, fmt.Errorf("vedette.proto: the oneof of Operation has no case %s", spec.Verb)
	}
	codec := &argsCodec{verb: verb, goType: reflect.TypeOf(spec.Args)}
	for _, f := range reflect.VisibleFields(codec.goType) {
		if f.Anonymous {
			continue
		}
		field := fieldCodec{index: f.Index}
		message := verb.Message()
		if nested := message.Fields().ByName(targetField); nested != nil && len(f.Index) > 1 {
			field.inTarget, message = true, nested.Message()
		}
		field.wire = wireField(message, f)
		if field.wire == nil {
			return nil, fmt.Errorf("vedette.proto: the message %s has no field for %s.%s: run go generate ./wire", message.Name(),
				codec.goType.Name(), f.Name)
		}
		codec.fields = append(codec.fields, field)
	}
	return codec, nil
}

// wireField returns the field of a message with the number in the wire tag of a Go field.
func wireField(message protoreflect.MessageDescriptor, f reflect.StructField) protoreflect.FieldDescriptor {
	number, _, _ := strings.Cut(f.Tag.Get("wire"), ",")
	n, err := strconv.Atoi(number)
	if err != nil {
		return nil
	}
	return message.Fields().ByNumber(protoreflect.FieldNumber(n))
}

// setArgs encodes arguments. The message shares the bytes of documents.
func (o *Operation) setArgs(args vedette.Args) error {
	codec := codecs().byType[reflect.TypeOf(args)]
	if codec == nil {
		return fmt.Errorf("encode an operation: the protocol has no verb for %T", args)
	}
	verb := codec.verb
	if a, ok := args.(vedette.DeleteArgs); ok && (a.FieldSelector != "" || a.All || a.AllNamespaces) {
		verb = codecs().deleteChosen
	}
	message := o.ProtoReflect().Mutable(verb).Message()
	v := reflect.ValueOf(args)
	target := message
	if nested := verb.Message().Fields().ByName(targetField); nested != nil {
		target = message.Mutable(nested).Message()
	}
	for _, f := range codec.fields {
		m := message
		if f.inTarget {
			m = target
		}
		if value := v.FieldByIndex(f.index); !isZero(value) {
			m.Set(f.wire, encodeField(m, f.wire, value))
		}
	}
	return nil
}

func isZero(v reflect.Value) bool {
	t, ok := v.Interface().(time.Time)
	return v.IsZero() || ok && t.IsZero() // a zero time may have a location
}

func encodeField(m protoreflect.Message, fd protoreflect.FieldDescriptor, v reflect.Value) protoreflect.Value {
	if t, ok := v.Interface().(time.Time); ok {
		return protoreflect.ValueOfInt64(t.UnixNano())
	}
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch fd.Kind() {
	case protoreflect.StringKind:
		if !fd.IsList() {
			return protoreflect.ValueOfString(v.String())
		}
		list := m.NewField(fd)
		for i := range v.Len() {
			list.List().Append(protoreflect.ValueOfString(v.Index(i).String()))
		}
		return list
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes(v.Bytes())
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(v.Bool())
	}
	return protoreflect.ValueOfInt64(v.Int())
}

// args decodes the arguments; nil if this program does not know the verb.
func (o *Operation) args() vedette.Args {
	m := o.ProtoReflect()
	verb := m.WhichOneof(codecs().oneof)
	if verb == nil {
		return nil
	}
	codec := codecs().byCase[verb.Number()]
	if codec == nil {
		return nil // a dry run, which may not be nested
	}
	message := m.Get(verb).Message()
	target := message
	if nested := verb.Message().Fields().ByName(targetField); nested != nil {
		target = message.Get(nested).Message()
	}
	v := reflect.New(codec.goType).Elem()
	for _, f := range codec.fields {
		m := message
		if f.inTarget {
			m = target
		}
		if m.Has(f.wire) {
			decodeField(v.FieldByIndex(f.index), f.wire, m.Get(f.wire))
		}
	}
	return v.Interface().(vedette.Args)
}

func decodeField(v reflect.Value, fd protoreflect.FieldDescriptor, value protoreflect.Value) {
	if t, ok := v.Addr().Interface().(*time.Time); ok {
		*t = time.Unix(0, value.Int()).UTC()
		return
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	switch fd.Kind() {
	case protoreflect.StringKind:
		if !fd.IsList() {
			v.SetString(value.String())
			return
		}
		list := value.List()
		v.Set(reflect.MakeSlice(v.Type(), list.Len(), list.Len()))
		for i := range list.Len() {
			v.Index(i).SetString(list.Get(i).String())
		}
	case protoreflect.BytesKind:
		v.SetBytes(value.Bytes())
	case protoreflect.BoolKind:
		v.SetBool(value.Bool())
	default:
		v.SetInt(value.Int())
	}
}
