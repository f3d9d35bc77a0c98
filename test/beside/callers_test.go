package beside

import (
	"context"
	"time"
)

// callers are all readers and writers of a journey.
type callers struct {
	readers     *readers
	writer      *writer
	stopReading context.CancelFunc
}

// startCallers starts readers and writers.
func (j *journey) startCallers(clusters map[string]*cluster) *callers {
	r := &readers{url: j.in.url, ownership: j.ownership, violations: &violations{}, times: &errorTimes{}, durations: &ownDurations{}, frozen: &j.frozen, down: &j.down, step: j.step,
		hasLabels: j.upstream.hasLabels()}
	c := &callers{readers: r, writer: startWriter(j.t.Context(), r)}
	asked := subjects{accounts: j.upstream.accounts(), applications: inventoryOf(clusters), tasks: c.writer.succeeded}
	if !j.upstream.knows(newcomer) {
		asked.hasNewcomer = func() bool { return j.ownership.isOwned(west, time.Now()) }
	}
	// The short form runs beside other tests on few processors, which readers without pause would starve.
	pause, fiatPause := 25*time.Millisecond, time.Second
	if isLong() {
		pause, fiatPause = time.Millisecond, 10*time.Second
	}
	ctx, cancel := context.WithCancel(j.t.Context())
	c.stopReading = cancel
	for name, next := range asked.orcaRequests() {
		r.run(ctx, name, pause, next)
	}
	for name, next := range asked.fiatRequests() {
		r.run(ctx, name, fiatPause, next)
	}
	return c
}

// stopReaders stops the readers, and judges how long their answers took.
func (c *callers) stopReaders() {
	c.stopReading()
	c.readers.group.Wait()
	c.readers.durations.judge(c.readers.violations)
}
