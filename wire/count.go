package wire

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// An encoded field takes two bytes at least, and a decoded one up to some 130. So
// a message of many small fields becomes 65 times as large in memory.
const (
	// smallMessage is a size in bytes that needs no counting: decoded, it takes 4
	// MiB at most.
	smallMessage = 64 << 10
	// maxFields of a message, those of the messages within it included. A
	// declaration of 20,000 feeds has 200,000.
	maxFields = 256 << 10
)

// checkFields refuses a message that would be much larger in memory than it is on
// the wire.
func checkFields(b []byte, md protoreflect.MessageDescriptor) error {
	if len(b) <= smallMessage {
		return nil
	}
	if n := countFields(b, md, 0, 0); n > maxFields {
		return fmt.Errorf("it has more than the %d fields that a message may have", maxFields)
	}
	return nil
}

// countFields counts fields, and stops soon after there are too many.
func countFields(b []byte, md protoreflect.MessageDescriptor, count, depth int) int {
	for len(b) > 0 && count <= maxFields {
		number, wireType, n := protowire.ConsumeTag(b)
		if n < 0 {
			return count // protobuf complains
		}
		size := protowire.ConsumeFieldValue(number, wireType, b[n:])
		if size < 0 {
			return count
		}
		count++
		fd := md.Fields().ByNumber(number)
		if wireType == protowire.BytesType && fd != nil && fd.Kind() == protoreflect.MessageKind && depth < maxNesting {
			value, _ := protowire.ConsumeBytes(b[n:])
			count = countFields(value, fd.Message(), count, depth+1)
		}
		b = b[n+size:]
	}
	return count
}
