package gate

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/ingest"
	"github.com/vedette-io/vedette/wire"
)

// records turns an agent's pieces into steps for the lane. Before the agent holds an
// account, all that it has to say are pulses: nothing is decompressed for more.
type records struct {
	session *session
	ctx     context.Context
	lane    *ingest.Lane
	early   []*wire.Data // of the frame that is open, while no account was held yet
	size    int          // of early
	begun   bool         // an account was held
	clock   agentClock
}

func (s *session) decode(ctx context.Context, lane *ingest.Lane) error {
	r := &records{session: s, ctx: ctx, lane: lane, clock: agentClock{welcomed: s.welcomed}}
	reader := wire.NewReader(r.piece, &s.gate.decoders, r)
	defer reader.Release()
	for {
		var rec wire.Record
		size, err := reader.Next(&rec)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return unreadable(err)
		}
		if err := r.put(r.stepOf(&rec, size)); err != nil {
			return err
		}
	}
}

// put hands a step to the lane, when its source may have more on the way.
func (r *records) put(step ingest.Step) error {
	if step.Type != ingest.Pulse { // which is not acknowledged
		if err := r.session.unstored.add(r.ctx, step.Size); err != nil {
			return err
		}
	}
	return r.lane.Put(r.ctx, step)
}

func unreadable(err error) error {
	if vedette.KindOf(err) == vedette.Unavailable {
		return err // of our memory, not of what the agent says
	}
	return vedette.Errorf(vedette.Invalid, "read the agent's records: %w", err)
}

// Reserve implements wire.Budget.
func (r *records) Reserve(n int) error { return r.session.share.reserve(r.ctx, n) }

// Release implements wire.Budget.
func (r *records) Release(n int) { r.session.share.release(n) }

// piece returns the next piece that is to be decompressed.
func (r *records) piece() (*wire.Data, error) {
	for {
		if r.begun && len(r.early) > 0 {
			first := r.early[0]
			r.early = r.early[1:]
			return first, nil
		}
		d, ok := <-r.session.pieces
		if !ok {
			return nil, io.EOF
		}
		if r.begun {
			return d, nil
		}
		if err := r.wait(d); err != nil {
			return nil, err
		}
	}
}

// wait keeps a piece until an account is held. Of a frame that ends before that only
// the pulses count.
func (r *records) wait(d *wire.Data) error {
	r.begun = r.session.hasHeld()
	r.early = append(r.early, d)
	r.size += len(d.GetZstd())
	switch {
	case r.begun:
		return nil
	case r.size > maxEarly:
		return vedette.Errorf(vedette.Invalid, "%d bytes of records came before the agent held an account", r.size)
	case !d.GetEndOfFrame():
		return nil
	}
	frame := r.early
	r.early, r.size = nil, 0
	return r.pulses(frame)
}

// maxPulses of one frame: an agent ends its frame after a few.
const maxPulses = 64

// pulses puts what a frame of an agent without accounts says. Whatever is no pulse is
// passed over: it is nothing that an honest agent sends.
func (r *records) pulses(frame []*wire.Data) error {
	for _, rec := range r.session.gate.quietRecords(frame) {
		if rec.GetPulse() == nil {
			continue
		}
		if err := r.lane.Put(r.ctx, r.stepOf(rec, proto.Size(rec))); err != nil {
			return err
		}
	}
	return nil
}

// quietRecords decodes a whole frame of small records, up to the first that is not
// small. One decoder is enough for all agents that have nothing to report.
func (g *Gate) quietRecords(frame []*wire.Data) (records []*wire.Record) {
	g.quiet.Lock()
	defer g.quiet.Unlock()
	reader := wire.NewReader(func() (*wire.Data, error) {
		if len(frame) == 0 {
			return nil, io.EOF
		}
		d := frame[0]
		frame = frame[1:]
		return d, nil
	}, &g.decoders, nil)
	reader.Limit(maxEarlyRecord)
	defer reader.Release()
	for range maxPulses {
		rec := &wire.Record{}
		if _, err := reader.Next(rec); err != nil {
			return records
		}
		records = append(records, rec)
	}
	return records
}

// stepOf translates a record, if it is of an account that this session holds in the
// record's term. Others count, because records are acknowledged by number, and
// change nothing: of an account that was lost while they were on their way, or of one
// that is another agent's.
func (r *records) stepOf(rec *wire.Record, size int) ingest.Step {
	s := r.session
	if p := rec.GetPulse(); p != nil {
		step := stepOf(rec, size)
		step.Time = r.clock.at(p, time.Now())
		return step
	}
	name, term := vedette.AccountName(rec.GetAccount()), vedette.Term(rec.GetTerm())
	held, was := s.holds(name, term)
	if held {
		return stepOf(rec, size)
	}
	if !was {
		s.foreign("records", name)
	}
	return ingest.Step{Type: ingest.Skip, Size: size}
}

// foreign counts what an agent says of an account that it does not have.
func (s *session) foreign(what string, account vedette.AccountName) {
	if n, ok := s.gate.foreign.Pass(); ok {
		s.log.Warn("agent speaks of an account that it does not have; that changes nothing", "what", what,
			"account", vedette.CleanText(string(account), maxName), "count", n)
	}
}
