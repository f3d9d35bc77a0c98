package wire

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/vedette-io/vedette"
)

// The limits of user texts in a message, in bytes.
const (
	maxOutcomeText = 64 << 10 // of an outcome: the full message of a cluster
	maxNoteText    = 8 << 10  // of an account, a feed or a connection
	maxWarnings    = 1000     // of an outcome
)

// Marshal encodes a message. Clusters and proxies send texts that are not valid UTF-8;
// protobuf rejects them, and a message that cannot be sent ends its stream. Therefore
// user texts are cleaned (vedette.CleanText), and in any other string invalid bytes
// become U+FFFD. The message itself is not modified.
//
// This is done for all messages in one place, because checks at every place that creates a text will be forgotten at the
// next: one error message in Latin-1 kept an agent offline with all its accounts. Control characters become spaces, because
// PostgreSQL rejects NUL. Names are repaired too: no API server accepts such a name, so only a broken or hostile one reports
// it, and confuses only its own objects. Names in operations are an exception: repaired, they would name another object, so
// such an operation fails as invalid before it is recorded or sent.
//
// Fields of type bytes would keep everything, and move the problem to SQL and JSON, which reject the same. Dropping a record
// that cannot be decoded would lose an object silently.
func Marshal(m proto.Message) ([]byte, error) {
	m = cleanedCopy(m)
	b, err := proto.Marshal(m)
	if err == nil {
		return b, nil
	}
	b, err = proto.Marshal(repairedCopy(m))
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", messageName(m), err)
	}
	return b, nil
}

// Unmarshal decodes a message from a peer that may not have checked its strings:
// invalid bytes become U+FFFD, and user texts are cleaned. The message shares no memory
// with b.
func Unmarshal(b []byte, m proto.Message) error {
	if _, err := checkCost(b, m); err != nil {
		return fmt.Errorf("decode %s: %w", messageName(m), err)
	}
	return unmarshal(b, m)
}

func unmarshal(b []byte, m proto.Message) error {
	err := proto.Unmarshal(b, m)
	if err != nil {
		err = proto.Unmarshal(repairEncoded(b, m.ProtoReflect().Descriptor(), 0), m)
	}
	if err != nil {
		return fmt.Errorf("decode %s: %w", messageName(m), err)
	}
	cleanTexts(m)
	return nil
}

func messageName(m proto.Message) string {
	return strings.ToLower(string(m.ProtoReflect().Descriptor().Name()))
}

// userText is a field that people read.
type userText struct {
	field *string
	limit int
}

func (t userText) clean() string { return vedette.CleanText(*t.field, t.limit) }

// userTexts returns the user texts of a message. Every message that has one is listed
// here; TestUserTextsHaveNoControlCharacters checks that none is missing.
func userTexts(m proto.Message) []userText {
	switch m := m.(type) {
	case *AgentMessage:
		if t := m.GetAccountError(); t != nil {
			return []userText{{&t.Message, maxNoteText}}
		}
		if c := m.GetConfigStatus(); c != nil {
			return []userText{{&c.Reason, maxNoteText}, {&c.Message, maxNoteText}}
		}
		var texts []userText
		for _, c := range m.GetConditions().GetConditions() {
			texts = append(texts, userText{&c.Type, maxNoteText}, userText{&c.Reason, maxNoteText}, userText{&c.Message, maxNoteText})
		}
		return texts
	case *Record:
		if s := m.GetStatus(); s != nil {
			return []userText{{&s.Message, maxNoteText}}
		}
		return textsOf(m.GetVerified().GetExamples())
	case *ServerMessage:
		if v := m.GetVerifyAnswer(); v != nil {
			return append(textsOf(v.GetNames()), userText{&v.Refusal, maxNoteText})
		}
		if a := m.GetAssignment(); a != nil {
			return []userText{{&a.Message, maxNoteText}}
		}
		if g := m.GetDrain(); g != nil {
			return []userText{{&g.Reason, maxNoteText}}
		}
	case *OperationsUp:
		if out := m.GetOutcome(); out != nil {
			return userTexts(out)
		}
	case *Outcome:
		texts := []userText{{&m.Reason, maxNoteText}, {&m.Message, maxOutcomeText}}
		for i := range m.GetWarnings() {
			texts = append(texts, userText{&m.Warnings[i], maxNoteText})
		}
		for _, c := range m.GetChanges() {
			texts = append(texts, userText{&c.Note, maxNoteText})
		}
		return texts
	case *AnswerPiece:
		return []userText{{&m.BrokeOff, maxNoteText}}
	}
	return nil
}

func textsOf(list []string) (texts []userText) {
	for i := range list {
		texts = append(texts, userText{&list[i], maxNoteText})
	}
	return texts
}

// cleanedCopy returns the message, or a copy with cleaned texts if one is not clean.
func cleanedCopy(m proto.Message) proto.Message {
	for _, t := range userTexts(m) {
		if t.clean() != *t.field {
			m = proto.Clone(m)
			cleanTexts(m)
			break
		}
	}
	return m
}

func cleanTexts(m proto.Message) {
	if out, ok := m.(*Outcome); ok && len(out.GetWarnings()) > maxWarnings {
		out.Warnings = out.Warnings[:maxWarnings]
	}
	for _, t := range userTexts(m) {
		if clean := t.clean(); clean != *t.field {
			*t.field = clean
		}
	}
}

// findInvalidUTF8 returns a string of a message that is not valid UTF-8; valid is true
// if there is none.
func findInvalidUTF8(m protoreflect.Message) (invalid string, valid bool) {
	valid = true
	check := func(fd protoreflect.FieldDescriptor, v protoreflect.Value) {
		switch {
		case fd.Kind() == protoreflect.StringKind && !utf8.ValidString(v.String()):
			invalid, valid = v.String(), false
		case fd.Kind() == protoreflect.MessageKind:
			if name, ok := findInvalidUTF8(v.Message()); !ok {
				invalid, valid = name, false
			}
		}
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if !fd.IsList() {
			check(fd, v) // messages of operations have no maps
			return valid
		}
		for i := 0; i < v.List().Len() && valid; i++ {
			check(fd, v.List().Get(i))
		}
		return valid
	})
	return invalid, valid
}

func toValidUTF8(s string) string { return strings.ToValidUTF8(s, string(utf8.RuneError)) }

// repairedCopy returns a copy of a message with only valid UTF-8 strings.
func repairedCopy(m proto.Message) proto.Message {
	m = proto.Clone(m)
	repair(m.ProtoReflect())
	return m
}

func repair(m protoreflect.Message) {
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsMap():
			m.Set(fd, protoreflect.ValueOfMap(repairMap(m.NewField(fd).Map(), v.Map())))
		case fd.IsList():
			for i, list := 0, v.List(); i < list.Len(); i++ {
				repairValue(fd, list.Get(i), func(v protoreflect.Value) { list.Set(i, v) })
			}
		default:
			repairValue(fd, v, func(v protoreflect.Value) { m.Set(fd, v) })
		}
		return true
	})
}

func repairValue(fd protoreflect.FieldDescriptor, v protoreflect.Value, set func(protoreflect.Value)) {
	switch fd.Kind() {
	case protoreflect.StringKind:
		set(protoreflect.ValueOfString(toValidUTF8(v.String())))
	case protoreflect.MessageKind:
		repair(v.Message())
	}
}

// repairMap copies a map of strings. All maps of the protocol are maps of strings.
func repairMap(to, from protoreflect.Map) protoreflect.Map {
	from.Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
		to.Set(protoreflect.ValueOfString(toValidUTF8(k.String())).MapKey(), protoreflect.ValueOfString(toValidUTF8(v.String())))
		return true
	})
	return to
}

// maxNesting limits the recursion into nested messages. The deepest valid message, the
// record of an object with an owner, has 4 levels.
const maxNesting = 16

// repairEncoded returns an encoded message with only valid UTF-8 strings. Bytes that
// cannot be decoded are kept, so that protobuf reports the error.
func repairEncoded(b []byte, md protoreflect.MessageDescriptor, depth int) []byte {
	var out []byte
	for len(b) > 0 {
		number, wireType, n := protowire.ConsumeTag(b)
		if n < 0 {
			return append(out, b...)
		}
		size := protowire.ConsumeFieldValue(number, wireType, b[n:])
		if size < 0 {
			return append(out, b...)
		}
		fd := md.Fields().ByNumber(number)
		if wireType != protowire.BytesType || fd == nil || depth > maxNesting {
			out = append(out, b[:n+size]...)
		} else {
			value, _ := protowire.ConsumeBytes(b[n:])
			out = protowire.AppendBytes(append(out, b[:n]...), repairField(value, fd, depth))
		}
		b = b[n+size:]
	}
	return out
}

func repairField(value []byte, fd protoreflect.FieldDescriptor, depth int) []byte {
	switch fd.Kind() {
	case protoreflect.StringKind:
		return []byte(toValidUTF8(string(value)))
	case protoreflect.MessageKind:
		return repairEncoded(value, fd.Message(), depth+1)
	}
	return value
}
