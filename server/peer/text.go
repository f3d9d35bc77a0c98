package peer

import (
	"errors"
	"fmt"
	"net/http"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/server/rest"
	"github.com/vedette-io/vedette/wire"
)

// The bodies of requests over REST have one member: a message in the text format of Protocol Buffers.
type (
	operationBody struct {
		Operation string `json:"operation"`
	}
	resultBody struct {
		Result string `json:"result"`
	}
)

const (
	// maxTextBody bounds a body. API servers accept manifests of 3 MiB, of which escapes in two formats make more.
	maxTextBody = 16 << 20
	// maxStructure bounds what of a text is outside of its strings: names, numbers and braces, of which 3 bytes can become a message of
	// some 200 bytes. An operation has less than 1 KiB of it, and the outcome of a deletion 60 bytes for each object.
	maxOperationStructure = 16 << 10
	maxResultStructure    = 256 << 10
	// maxResultBytes bounds what of an outcome becomes text. Of bytes that are not ASCII, each becomes 5 in both formats.
	maxResultBytes = 2 << 20
	// maxNesting is how deep messages may be nested. Ours are nested 5 deep.
	maxNesting = 16
)

// noTypes resolves neither extensions nor the types of google.protobuf.Any, so that none is built because a text names it.
var noTypes = &protoregistry.Types{}

// parseText parses a message. Unknown fields are errors: to leave them out would change what is asked for.
func parseText(what, text string, m proto.Message, maxStructure int) error {
	if n := structureOf(text); n > maxStructure {
		return vedette.Errorf(vedette.Invalid, "the %s has %d bytes of names, numbers and braces, and may have %d", what, n, maxStructure)
	}
	err := prototext.UnmarshalOptions{Resolver: noTypes, RecursionLimit: maxNesting}.Unmarshal([]byte(text), m)
	if err != nil {
		return vedette.Errorf(vedette.Invalid, "the %s is not the text of a %s, as this server knows it: %s", what,
			m.ProtoReflect().Descriptor().FullName(), vedette.CleanText(err.Error(), maxReason))
	}
	return nil
}

// structureOf counts the bytes of a text outside of strings, comments and white space.
func structureOf(text string) (n int) {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case ' ', '\t', '\n', '\r':
		case '#':
			for i < len(text) && text[i] != '\n' {
				i++
			}
		case '"', '\'':
			n += 2
			for i++; i < len(text) && text[i] != c && text[i] != '\n'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		default:
			n++
		}
	}
	return n
}

// formatText returns the text of a message.
func formatText(m proto.Message) (string, error) {
	text, err := prototext.MarshalOptions{}.Marshal(m)
	if err != nil {
		return "", vedette.Errorf(vedette.Invalid, "it has no text: %s", vedette.CleanText(err.Error(), maxReason))
	}
	return string(text), nil
}

// parseOperation reads the body of a request for an operation.
func parseOperation(raw []byte) (*wire.Operation, error) {
	var body operationBody
	if err := decodeBody(raw, &body); err != nil {
		return nil, err
	}
	op := &wire.Operation{}
	if err := parseText("operation", body.Operation, op, maxOperationStructure); err != nil {
		return nil, err
	}
	switch {
	case op.GetId() == "" || op.GetAccount() == "":
		return nil, vedette.Errorf(vedette.Invalid, "the operation has no id or no account")
	case op.GetVerb() == nil:
		return nil, vedette.Errorf(vedette.Invalid, "operation %.60q has no verb", op.GetId())
	case op.GetTimeoutMillis() <= 0 || op.GetTimeoutMillis() > maxMillis:
		return nil, vedette.Errorf(vedette.Invalid, "operation %.60q has no timeout, or one of more than a year", op.GetId())
	}
	return op, nil
}

// parseResult reads the body of a request with a result.
func parseResult(raw []byte) (vedette.Outcome, error) {
	var body resultBody
	if err := decodeBody(raw, &body); err != nil {
		return vedette.Outcome{}, err
	}
	var encoded wire.Outcome
	if err := parseText("result", body.Result, &encoded, maxResultStructure); err != nil {
		return vedette.Outcome{}, err
	}
	isStatus := encoded.GetStatus() >= 100 && encoded.GetStatus() <= 599
	if encoded.GetId() == "" || encoded.GetState() == wire.Outcome_STATE_UNSPECIFIED || !isStatus {
		return vedette.Outcome{}, vedette.Errorf(vedette.Invalid, "the result has no id, no state, or no status of HTTP")
	}
	return wire.ToOutcome(&encoded), nil
}

func decodeBody(raw []byte, into any) error {
	err := exactjson.Unmarshal(raw, into, exactjson.Limits{Bytes: 4 * maxTextBody})
	if err != nil {
		return vedette.Errorf(vedette.Invalid, "read the body: %w", err)
	}
	return nil
}

// tooLarge is the outcome of what was read, and cannot be sent.
func tooLarge() vedette.Outcome {
	return vedette.Outcome{State: vedette.Failed, Status: http.StatusRequestEntityTooLarge, Reason: "TooLarge",
		Message: fmt.Sprintf("the answer has more than the %d bytes that servers send each other over REST: request less with a namespace or a selector", maxResultBytes)}
}

// encodeResult returns the body of a request with an outcome.
func encodeResult(out vedette.Outcome) ([]byte, error) {
	if sizeOf(out) > maxResultBytes { // before it is copied
		return nil, errTooLong
	}
	text, err := formatText(wire.FromOutcome(out))
	if err != nil {
		return nil, fmt.Errorf("encode the outcome of %s: %w", out.ID, err)
	}
	body, err := rest.Encode(resultBody{text})
	if err == nil && len(body) > maxTextBody {
		return nil, errTooLong
	}
	return body, err
}

// sizeOf returns the bytes of what an outcome carries.
func sizeOf(out vedette.Outcome) int {
	n := len(out.Result)
	for _, object := range out.Objects {
		n += len(object)
	}
	return n
}

var errTooLong = errors.New("the text is too long")

// formatResult returns the body of a request with an outcome. If that is too long, objects are left out of what has changed something, and
// what was only read fails: half of it must not pass for all.
func formatResult(out vedette.Outcome, reads bool) ([]byte, error) {
	body, err := encodeResult(out)
	if !errors.Is(err, errTooLong) {
		return body, err
	}
	if reads {
		id := out.ID
		out = tooLarge()
		out.ID = id
		return encodeResult(out)
	}
	out.Objects = nil
	out.DropCacheObject()
	return encodeResult(out)
}
