// Package membudget fits budgets of memory to what the process has.
//
// With all entry points attacked at once, each budget held and their sum did not: a server in a container of 512 MiB took up
// to 640. With budgets of a half instead of a quarter, 250 to 330 MiB were in use below a soft limit of 384. Garbage was
// collected ten times a second and took 43 % of the processor time, and changes of an honest agent became visible within 3.2
// to 4.2 s at p99. With a quarter: 0.6 to 1.4 s, operations within 0.5 to 1.1 s, 449 to 469 MiB for the server, and 16 to 21
// % of the processor time for garbage. So such a server also accepts smaller bodies, 8 MiB instead of 32 and 36 MiB decoded,
// and says so with 413 or 400: a share that never suffices would end larger ones with 503, as if another try would help.
//
// One budget for the whole process was weighed. Each request would then wait for those of all other entry points, and the
// largest requests that are allowed could hold it together; several budgets keep what is attacked away from what is not.
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
