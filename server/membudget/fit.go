// Package membudget fits budgets of memory to what the process has.
package membudget

// full is from how many bytes of memory of the process on budgets are as large as anybody wants.
const full = 1 << 30

// Fit returns a budget of up to most bytes for a process that may take so many bytes; 0 means that nobody knows. A
// process with less than 1 GiB has smaller budgets, because all of them can be used up at the same
// time. No budget is less than half of most, so that the largest request still fits.
func Fit(most, available int64) int64 {
	if available <= 0 || available >= full {
		return most
	}
	return max(most/2, most/(1<<20)*(available>>20)/(full>>20)<<20)
}
