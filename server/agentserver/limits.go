package agentserver

import (
	"unicode"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/wire"
)

// What one agent may say of itself and its accounts. Memory that is kept for as long
// as it is connected also counts against the gate's memory.
const (
	maxNameBytes       = 255       // bytes, of an agent's, a host's or a zone's name
	maxAccounts        = 10_000    // of one agent
	maxPropertiesBytes = 256 << 10 // bytes, of an account
	maxIdentityBytes   = 4 << 10   // bytes, of a cluster's identity and an account's shape, each
	maxAccountError    = 1 << 10   // bytes, of what keeps an account from being reported
	sessionMemory      = 32 << 10  // bytes, that a session takes by being there
	accountMemory      = 1 << 10   // bytes, that an account takes besides what is said of it
	// propertiesMemory is how much memory properties take, by a byte of their JSON: an
	// entry of a list of short texts has four bytes there.
	propertiesMemory   = 8
	maxBufferedPieces  = 64 << 10 // bytes, compressed, of records before the first account is held
	maxHeartbeatRecord = 1 << 10  // bytes, of a record in them: they are pulses
)

// checkHello refuses an agent whose names can't be shown.
func checkHello(h *wire.Hello) error {
	if h.GetAgentId() == "" {
		return status.Error(codes.InvalidArgument, "the first message must be a Hello with the agent's ID")
	}
	for _, name := range []string{h.GetAgentId(), h.GetAgentVersion(), h.GetHostname(), h.GetZoneId()} {
		if len(name) > maxNameBytes || !isPrintable(name) {
			return status.Errorf(codes.InvalidArgument, "the ID, version, host name or zone of the agent is %.40q: it must be printable and at most %d bytes long", name, maxNameBytes)
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

// checkRegister refuses a registration that is too large to be kept.
func checkRegister(r *wire.Register) error {
	switch c := r.GetCluster(); {
	case len(r.GetAccount()) > maxNameBytes || !isPrintable(r.GetAccount()):
		return vedette.Errorf(vedette.Invalid, "the account name %.40q must be printable and at most %d bytes long", r.GetAccount(), maxNameBytes)
	case len(r.GetProperties()) > maxPropertiesBytes:
		return vedette.Errorf(vedette.Invalid, "the account's properties have %d bytes; the maximum is %d", len(r.GetProperties()), maxPropertiesBytes)
	case max(len(c.GetUid()), len(c.GetHost()), len(c.GetFingerprint()), len(c.GetVersion()), len(r.GetShape())) > maxIdentityBytes:
		return vedette.Errorf(vedette.Invalid, "the identity or the shape of the account's cluster has more than %d bytes", maxIdentityBytes)
	}
	return nil
}
