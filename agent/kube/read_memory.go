package kube

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/vedette-io/vedette/agent/jsonstream"
	"github.com/vedette-io/vedette/internal/fair"
)

// The memory of the read buffers of an agent, in bytes. A buffer counts twice, because an object is copied when it
// leaves it. Each account has some of its own, so that buffers of common size never wait for other accounts. Larger
// buffers share the rest.
const (
	ownMemory      = 256 << 10 // of each account
	ownBuffers     = 128 << 10 // of ownMemory that one buffer may take
	sharedMemory   = 32 << 20
	accountShare   = 8 << 20 // of sharedMemory
	bytesOfBuffers = 2       // a byte of a buffer
)

// maxReadBuffer is the largest buffer that a ReadPermit grants.
const maxReadBuffer = accountShare / bytesOfBuffers

// ReadMemory bounds the read buffers of all accounts of an agent. A nil ReadMemory grants everything. It is safe for concurrent
// use.
//
// One API server with 300 kinds that began an object of 1.9 MB on each watch and stopped took 660 MiB of the agent, and 48
// API servers that began a document of 7 MB 448 to 562 MiB: each account was bounded, and all of them together were not. The
// same attacks now take 44 MiB, and 120 to 151 MiB, most of it for 48 connections. A message of a watch pays 0.5 µs.
//
// The first buffer of an object waits as long as its stream lasts: nothing is held meanwhile, and it is the server that is
// waited for if the outbox is full. A buffer that grows waits a minute, and then its request fails and is repeated. The first
// 32 KiB of a document are free: an account reads one at a time, and must reach its cluster while its feeds use their memory.
// The discovery of operations uses this memory too. One permit for each large buffer was weighed: permits of one size are
// either too few for objects of 100 KB or too many for objects of 16 MB.
type ReadMemory struct{ line *fair.Split }

// NewReadMemory returns a ReadMemory.
func NewReadMemory() *ReadMemory {
	return &ReadMemory{fair.NewSplit(fair.Config{Capacity: math.MaxInt64, Share: ownMemory},
		fair.Config{Capacity: sharedMemory, Share: accountShare}, ownBuffers)}
}

// ReadPermitConfig configures a ReadPermit.
type ReadPermitConfig struct {
	Account string
	// Timeout is how long an object may take whose buffer uses what accounts share: to wait for memory, and, apart from
	// that, for data.
	Timeout time.Duration
	// OnTimeout is called, from another goroutine, when such an object waited for data for too long. It must not block.
	OnTimeout func()
}

// Permit returns the permit of one reader, whose stream ends with ctx, for buffers of up to maxReadBuffer.
func (m *ReadMemory) Permit(ctx context.Context, cfg ReadPermitConfig) *ReadPermit {
	if m == nil {
		return &ReadPermit{}
	}
	return &ReadPermit{ctx: ctx, cfg: cfg, line: m.line, grant: m.line.None(cfg.Account)}
}

// ReadPermit implements jsonstream.Permit. A zero ReadPermit grants everything.
type ReadPermit struct {
	ctx   context.Context // of the stream
	cfg   ReadPermitConfig
	line  *fair.Split // nil for no bound
	grant *fair.SplitGrant

	shared    bool          // the buffer uses what accounts share
	remaining time.Duration // how long data may still take
	timer     *time.Timer   // runs during waits for data; nil before the first
}

var errNoMemory = errors.New("the large objects of other API servers used the agent's memory for read buffers for too long")

// Acquire implements jsonstream.Permit. The first buffer of an object waits until the stream ends, because the API server is not waited
// for meanwhile.
func (p *ReadPermit) Acquire(size int) error {
	if p.line == nil {
		return nil
	}
	ctx, cancel := p.ctx, func() {}
	if p.grant.Units() > 0 {
		ctx, cancel = context.WithTimeoutCause(ctx, p.cfg.Timeout, errNoMemory)
	}
	defer cancel()
	err := p.grant.Grow(ctx, bytesOfBuffers*int64(size)-p.grant.Units())
	if errors.Is(err, fair.ErrTooLarge) {
		return fmt.Errorf("%w: a part of a document of more than %d MiB", jsonstream.ErrMalformed, maxReadBuffer>>20)
	}
	if !p.shared && p.grant.Units() > ownBuffers {
		p.shared, p.remaining = true, p.cfg.Timeout
	}
	return err
}

// StartWait implements jsonstream.Permit.
func (p *ReadPermit) StartWait() (stop func()) {
	if !p.shared {
		return func() {}
	}
	began := time.Now()
	if p.timer == nil {
		p.timer = time.AfterFunc(p.remaining, p.cfg.OnTimeout)
	} else {
		p.timer.Reset(p.remaining)
	}
	return func() {
		p.timer.Stop()
		p.remaining -= time.Since(began)
	}
}

// ObjectDone implements jsonstream.Permit. If nobody waits for memory, the next object may take as long.
func (p *ReadPermit) ObjectDone() (giveBack bool) {
	p.remaining = p.cfg.Timeout
	return p.shared && p.line.Stats().Waiting > 0
}

// Release implements jsonstream.Permit.
func (p *ReadPermit) Release(size int) {
	p.grant.Shrink(p.grant.Units() - bytesOfBuffers*int64(size))
	p.shared = p.grant.Units() > ownBuffers
}
