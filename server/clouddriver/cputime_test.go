package clouddriver_test

import (
	"syscall"
	"testing"
	"time"
)

// cpuMeter sums the processor time of this process, which other work on the machine changes less
// than the time that passes.
type cpuMeter struct {
	sum, started time.Duration
}

func cpuTime() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func (m *cpuMeter) start() { m.started = cpuTime() }
func (m *cpuMeter) stop()  { m.sum += cpuTime() - m.started }
func (m *cpuMeter) report(b *testing.B) {
	b.ReportMetric(float64(m.sum.Microseconds())/1000/float64(b.N), "cpu-ms/op")
}
