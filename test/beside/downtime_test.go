package beside

import (
	"sync"
	"time"
)

// recovery is how long after a downtime errors still belong to it.
const recovery = 500 * time.Millisecond

// downtimes are the times in which something did not run.
type downtimes struct {
	mu   sync.Mutex
	list []window
}

type window struct{ from, to time.Time } // to is zero while it lasts

func (d *downtimes) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = append(d.list, window{from: time.Now()})
}

func (d *downtimes) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list[len(d.list)-1].to = time.Now()
}

// overlap reports whether a request ran during a downtime, or shortly after it.
func (d *downtimes) overlap(began, ended time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range d.list {
		if ended.After(w.from) && (w.to.IsZero() || began.Before(w.to.Add(recovery))) {
			return true
		}
	}
	return false
}

// last returns the end of the last downtime; zero if there was none, or while it lasts.
func (d *downtimes) last() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.list) == 0 {
		return time.Time{}
	}
	return d.list[len(d.list)-1].to
}
