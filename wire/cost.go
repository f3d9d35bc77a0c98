package wire

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// An empty nested message takes 2 bytes when it is encoded and about 130 bytes when it is
// decoded. So a message of many small fields can become 65 times as large.
const (
	messageCost = 150 // approximate bytes of a nested message in memory
	fieldCost   = 24  // approximate bytes of any other field in memory, without its content

	// smallMessage is the size in bytes up to which the cost is not checked.
	smallMessage = 64 << 10
	// The limits of a message's cost in bytes. A declaration of 50,000 feeds costs 33 MiB.
	// Messages of agents outside of their records are far smaller.
	maxCost      = 64 << 20
	maxAgentCost = 8 << 20
)

// checkCost rejects a message that would be much larger in memory than on the wire. It
// returns the approximate bytes that the fields need in memory; 0 for a small message.
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
		return cost, fmt.Errorf("its fields need more than %d bytes of memory", limit)
	}
	return cost, nil
}

// costOf returns the cost of the fields. It stops soon after the limit is exceeded.
func costOf(b []byte, md protoreflect.MessageDescriptor, limit, depth int) (cost int) {
	for len(b) > 0 && cost <= limit {
		number, wireType, n := protowire.ConsumeTag(b)
		if n < 0 {
			return cost // protobuf will report the error
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
