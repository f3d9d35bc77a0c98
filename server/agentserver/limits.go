package agentserver

import (
	"unicode"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/wire"
)

// The limits of what one agent may send about itself and its accounts. What is kept while
// it is connected also counts toward the server's memory.
const (
	maxNameBytes       = 255       // bytes of the name of an agent, a host, a zone or a process
	maxReplicas        = 1_000_000 // of one agent, that are shown
	maxAccounts        = 10_000    // of one agent
	maxPropertiesBytes = 256 << 10 // bytes of JSON of an account
	maxIdentityBytes   = 4 << 10   // bytes of each field of a cluster's identity, and of an account's shape
	maxAccountError    = 1 << 10   // bytes of an account error
	sessionMemory      = 64 << 10  // bytes that an idle session uses: eight goroutines, its hello, and gRPC's stream
	accountMemory      = 1 << 10   // bytes that an account uses besides its name and properties
	// propertiesMemory is the memory of properties per byte of their JSON. It is high
	// because an element of a list of short texts has only four bytes in JSON.
	propertiesMemory   = 8
	maxBufferedPieces  = 64 << 10 // compressed bytes of records before the agent has an account
	maxHeartbeatRecord = 1 << 10  // bytes of a record before the agent has an account: a heartbeat
)

// checkHello rejects an agent whose names cannot be shown.
func checkHello(h *wire.Hello) error {
	if h.GetAgentId() == "" {
		return status.Error(codes.InvalidArgument, "the first message must be a Hello with the agent's ID")
	}
	for _, name := range []string{h.GetAgentId(), h.GetAgentVersion(), h.GetHostname(), h.GetZoneId(), h.GetProcess()} {
		if len(name) > maxNameBytes || !isPrintable(name) {
			return status.Errorf(codes.InvalidArgument,
				"the ID, version, host name, zone or process of the agent is %.40q: it must be printable and at most %d bytes long", name, maxNameBytes)
		}
	}
	return nil
}

func isPrintable(s string) bool {
	for _, r := range s {
		if unicode.IsControl(r) {
			return false
		}
	}
	return true
}

// checkRegister rejects a registration that is too large to keep.
func checkRegister(r *wire.Register) error {
	if err := vedette.AccountName(r.GetAccount()).Validate(); err != nil {
		return err
	}
	switch c := r.GetCluster(); {
	case len(r.GetProperties()) > maxPropertiesBytes:
		return vedette.Errorf(vedette.Invalid, "the account's properties have %d bytes; the maximum is %d", len(r.GetProperties()),
			maxPropertiesBytes)
	case max(len(c.GetUid()), len(c.GetHost()), len(c.GetFingerprint()), len(c.GetVersion()), len(r.GetShape())) > maxIdentityBytes:
		return vedette.Errorf(vedette.Invalid, "the identity or the shape of the account's cluster has more than %d bytes", maxIdentityBytes)
	}
	return nil
}
