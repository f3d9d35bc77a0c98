package wire

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// An empty message within another takes two bytes when it is encoded, and some 130
// when it is decoded. So a message of many small fields becomes 65 times as large.
const (
	messageCost = 150 // bytes, about, that a message within another takes in memory
	fieldCost   = 24  // bytes, about, that another field takes besides its content

	// smallMessage is a size in bytes that needs no counting.
	smallMessage = 64 << 10
	// What the fields of a message may take. A declaration of 50,000 feeds takes 33
	// MiB; what agents say outside of their records is far smaller.
	maxCost      = 64 << 20
	maxAgentCost = 8 << 20
)

// checkCost refuses a message that would be much larger in memory than it is on the
// wire. It returns how many bytes its fields will take, about, where they count.
func checkCost(b []byte, m proto.Message) (int, error) {
	if len(b) <= smallMessage {
		return 0, nil
	}
	limit := maxCost
	switch m.(type) {
	case *AgentMessage, *OperationsUp, *AnswerPiece:
		limit = maxAgentCost
	}
	cost := costOf(b, m.ProtoReflect().Descriptor(), limit, 0)
	if cost > limit {
		return cost, fmt.Errorf("its many fields would take more than %d bytes of memory", limit)
	}
	return cost, nil
}

// costOf counts what fields take, and stops soon after it is too much.
func costOf(b []byte, md protoreflect.MessageDescriptor, limit, depth int) (cost int) {
	for len(b) > 0 && cost <= limit {
		number, wireType, n := protowire.ConsumeTag(b)
		if n < 0 {
			return cost // protobuf complains
		}
		size := protowire.ConsumeFieldValue(number, wireType, b[n:])
		if size < 0 {
			return cost
		}
		cost += fieldCost
		fd := md.Fields().ByNumber(number)
		if wireType == protowire.BytesType && fd != nil && fd.Kind() == protoreflect.MessageKind && depth < maxNesting {
			value, _ := protowire.ConsumeBytes(b[n:])
			cost += messageCost - fieldCost + costOf(value, fd.Message(), limit-cost, depth+1)
		}
		b = b[n+size:]
	}
	return cost
}
