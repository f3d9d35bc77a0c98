package wire

// NewestProtocol is the newest version of the language that this program speaks, and
// OldestProtocol the oldest. Two programs meet in the newest that both speak.
const (
	NewestProtocol = 1
	OldestProtocol = 1
)

// NegotiateProtocol returns the newest protocol that this program shares with one that
// speaks oldest to newest, and whether there is one.
func NegotiateProtocol(oldest, newest uint32) (uint32, bool) {
	negotiated := min(uint32(NewestProtocol), newest)
	return negotiated, negotiated >= max(uint32(OldestProtocol), oldest)
}
