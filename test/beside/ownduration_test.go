package beside

import (
	"fmt"
	"sync"
	"time"
)

// ownDurations are how long answers about agents' accounts took while the upstream Clouddriver was frozen.
type ownDurations struct {
	mu       sync.Mutex
	byReader map[[2]string]*ownDuration // by step and reader
}

type ownDuration struct {
	all, long int
	example   string // the first that took longer than ownTimeout
}

// add adds an answer.
func (d *ownDurations) add(step, reader, example string, duration time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := [2]string{step, reader}
	if d.byReader == nil {
		d.byReader = map[[2]string]*ownDuration{}
	}
	if d.byReader[key] == nil {
		d.byReader[key] = &ownDuration{}
	}
	found := d.byReader[key]
	found.all++
	if duration <= ownTimeout {
		return
	}
	if found.long++; found.long == 1 {
		found.example = example
	}
}

// judge adds a violation for each step and reader of which most answers took longer than ownTimeout.
func (d *ownDurations) judge(to *violations) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, found := range d.byReader {
		if found.long*2 > found.all {
			to.add(key[0], key[1], fmt.Sprintf("takes longer than %v in most of its answers while the upstream Clouddriver is frozen", ownTimeout),
				fmt.Sprintf("%d of %d: %s", found.long, found.all, found.example))
		}
	}
}
