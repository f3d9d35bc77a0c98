// Package membudget fits budgets of memory to what the process has.
package membudget

// From how many bytes of memory of the process on budgets are as large as anybody wants, and up to how many they are
// as small as they get.
const (
	large = 1 << 30
	small = 512 << 20
)

// Fit returns a budget of up to most bytes for a process that may take so many bytes; 0 means that nobody knows. A
// process with less than 1 GiB has smaller budgets, down to a quarter with 512 MiB, because all of them can be used up at
// the same time, and garbage needs room too.
func Fit(most, available int64) int64 {
	if available <= 0 || available >= large {
		return most
	}
	const mib = 1 << 20
	least := most / 4
	above := max(available-small, 0) / mib
	return least + (most-least)/mib*above/((large-small)/mib)*mib
}
