package wire

// NewestProtocol and OldestProtocol are the range of protocol versions that this program
// supports. Two programs use the newest version that both support.
//
//	1  the first one
//	2  feeds are verified: Verify, Verified and VerifyAnswer
const (
	NewestProtocol = 2
	OldestProtocol = 1
)

// VerifyProtocol is the protocol from which on feeds are verified.
const VerifyProtocol = 2

// NegotiateProtocol returns the newest protocol version that this program shares with a
// peer that supports oldest to newest, and whether there is one.
func NegotiateProtocol(oldest, newest uint32) (uint32, bool) {
	negotiated := min(uint32(NewestProtocol), newest)
	return negotiated, negotiated >= max(uint32(OldestProtocol), oldest)
}
