package coherence

import (
	"time"

	"github.com/vedette-io/vedette"
)

// Report says that an agent reports an account. Times are by the clock of the server that has the Report.
type Report struct {
	Account vedette.AccountName
	// FreshAt is up to when the live feeds of the account are complete, CompleteAt up to when all are; zero if it is unknown.
	FreshAt, CompleteAt time.Time
}

// Age is a Report for another server, whose clock may tell another time: how long ago it was. A negative age is unknown.
type Age struct {
	Account         vedette.AccountName
	Fresh, Complete time.Duration
}

func agesOf(reports []Report, now time.Time) []Age {
	age := func(t time.Time) time.Duration {
		if t.IsZero() {
			return -1
		}
		return max(0, now.Sub(t))
	}
	ages := make([]Age, len(reports))
	for i, r := range reports {
		ages[i] = Age{r.Account, age(r.FreshAt), age(r.CompleteAt)}
	}
	return ages
}

// maxAge is older than anything, and does not overflow.
const maxAge = 100 * 365 * 24 * time.Hour

// reportsOf returns reports by this server's clock. The ages were measured after a time, so counted from then they look older
// than they are, and never fresher.
func reportsOf(ages []Age, after time.Time) []Report {
	at := func(age time.Duration) time.Time {
		if age < 0 {
			return time.Time{}
		}
		return after.Add(-min(age, maxAge))
	}
	reports := make([]Report, len(ages))
	for i, a := range ages {
		reports[i] = Report{a.Account, at(a.Fresh), at(a.Complete)}
	}
	return reports
}
