package vedette

import "time"

// AccountAge says up to when an account was complete, by the server's clock. Its agent knows that by asking the cluster. Zero
// times are unknown.
type AccountAge struct {
	Term Term      // in which the agent reports the account
	Live time.Time // as far as its live feeds report
	All  time.Time // as far as any of its feeds reports that was complete before
}
