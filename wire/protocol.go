package wire

// NewestProtocol and OldestProtocol are the range of protocol versions that this program
// supports. Two programs use the newest version that both support.
const (
	NewestProtocol = 1
	OldestProtocol = 1
)

// NegotiateProtocol returns the newest protocol version that this program shares with a
// peer that supports oldest to newest, and whether there is one.
func NegotiateProtocol(oldest, newest uint32) (uint32, bool) {
	negotiated := min(uint32(NewestProtocol), newest)
	return negotiated, negotiated >= max(uint32(OldestProtocol), oldest)
}
