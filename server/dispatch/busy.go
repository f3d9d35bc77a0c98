package dispatch

import "github.com/vedette-io/vedette"

// IsBusy reports whether an operation of an account runs. Streams of logs do not count, because they
// may last for hours.
func (d *Dispatcher) IsBusy(account vedette.AccountName) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.pending {
		if p.account == account && !p.isLogs {
			return true
		}
	}
	return false
}
