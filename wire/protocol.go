package wire

// Protocol is the newest version of the language that this program speaks, and
// OldestProtocol the oldest. Two programs meet in the newest that both speak.
const (
	Protocol       = 1
	OldestProtocol = 1
)

// Agree returns the newest protocol that this program shares with one that
// speaks oldest to newest, and whether there is one.
func Agree(oldest, newest uint32) (uint32, bool) {
	agreed := min(uint32(Protocol), newest)
	return agreed, agreed >= max(uint32(OldestProtocol), oldest)
}
