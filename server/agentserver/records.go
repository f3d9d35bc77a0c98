package agentserver

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

// recordDecoder turns an agent's pieces into steps for the lane. Before the agent holds an
// account, all that it has to say are pulses: nothing is decompressed for more.
type recordDecoder struct {
	session       *session
	ctx           context.Context
	pipeline      *ingest.Pipeline
	buffered      []*wire.Data // of the frame that is open, while no account was held yet
	bufferedBytes int          // of early
	hasAccount    bool         // an account was held
	clock         agentClock
}

func (s *session) decode(ctx context.Context, pipeline *ingest.Pipeline) error {
	r := &recordDecoder{session: s, ctx: ctx, pipeline: pipeline, clock: agentClock{welcomedAt: s.welcomedAt}}
	reader := wire.NewReader(r.nextPiece, &s.server.decoders, r)
	defer reader.Release()
	for {
		var rec wire.Record
		size, err := reader.Next(&rec)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return decodeError(err)
		}
		if err := r.put(r.toStep(&rec, size)); err != nil {
			return err
		}
	}
}

// put hands a step to the lane, when its source may have more on the way.
func (r *recordDecoder) put(step ingest.Step) error {
	if step.Type != ingest.Heartbeat { // which is not acknowledged
		if err := r.session.unstored.add(r.ctx, step.Size); err != nil {
			return err
		}
	}
	return r.pipeline.Put(r.ctx, step)
}

func decodeError(err error) error {
	if vedette.KindOf(err) == vedette.Unavailable {
		return err // of our memory, not of what the agent says
	}
	return vedette.Errorf(vedette.Invalid, "read the agent's records: %w", err)
}

// Reserve implements wire.Budget.
func (r *recordDecoder) Reserve(n int) error { return r.session.share.reserve(r.ctx, n) }

// Release implements wire.Budget.
func (r *recordDecoder) Release(n int) { r.session.share.release(n) }

// nextPiece returns the next piece that is to be decompressed.
func (r *recordDecoder) nextPiece() (*wire.Data, error) {
	for {
		if r.hasAccount && len(r.buffered) > 0 {
			first := r.buffered[0]
			r.buffered = r.buffered[1:]
			return first, nil
		}
		d, ok := <-r.session.pieces
		if !ok {
			return nil, io.EOF
		}
		if r.hasAccount {
			return d, nil
		}
		if err := r.buffer(d); err != nil {
			return nil, err
		}
	}
}

// buffer keeps a piece until an account is held. Of a frame that ends before that only
// the pulses count.
func (r *recordDecoder) buffer(d *wire.Data) error {
	r.hasAccount = r.session.hasHeldAccount()
	r.buffered = append(r.buffered, d)
	r.bufferedBytes += len(d.GetZstd())
	switch {
	case r.hasAccount:
		return nil
	case r.bufferedBytes > maxBufferedPieces:
		return vedette.Errorf(vedette.Invalid, "received %d bytes of records before the agent had an account", r.bufferedBytes)
	case !d.GetEndOfFrame():
		return nil
	}
	frame := r.buffered
	r.buffered, r.bufferedBytes = nil, 0
	return r.putHeartbeats(frame)
}

// maxFrameHeartbeats of one frame: an agent ends its frame after a few.
const maxFrameHeartbeats = 64

// putHeartbeats puts what a frame of an agent without accounts says. Whatever is no pulse is
// passed over: it is nothing that an honest agent sends.
func (r *recordDecoder) putHeartbeats(frame []*wire.Data) error {
	for _, rec := range r.session.server.decodeHeartbeats(frame) {
		if rec.GetHeartbeat() == nil {
			continue
		}
		if err := r.pipeline.Put(r.ctx, r.toStep(rec, proto.Size(rec))); err != nil {
			return err
		}
	}
	return nil
}

// decodeHeartbeats decodes a whole frame of small records, up to the first that is not
// small. One decoder is enough for all agents that have nothing to report.
func (srv *Server) decodeHeartbeats(frame []*wire.Data) (records []*wire.Record) {
	srv.heartbeatMu.Lock()
	defer srv.heartbeatMu.Unlock()
	reader := wire.NewReader(func() (*wire.Data, error) {
		if len(frame) == 0 {
			return nil, io.EOF
		}
		d := frame[0]
		frame = frame[1:]
		return d, nil
	}, &srv.decoders, nil)
	reader.SetMaxRecord(maxHeartbeatRecord)
	defer reader.Release()
	for range maxFrameHeartbeats {
		rec := &wire.Record{}
		if _, err := reader.Next(rec); err != nil {
			return records
		}
		records = append(records, rec)
	}
	return records
}

// toStep translates a record, if it is of an account that this session holds in the
// record's term. Others count, because records are acknowledged by number, and
// change nothing: of an account that was lost while they were on their way, or of one
// that is another agent's.
func (r *recordDecoder) toStep(rec *wire.Record, size int) ingest.Step {
	s := r.session
	if p := rec.GetHeartbeat(); p != nil {
		step := decodeStep(rec, size)
		step.Time = r.clock.completeUntil(p, time.Now())
		return step
	}
	name, term := vedette.AccountName(rec.GetAccount()), vedette.Term(rec.GetTerm())
	isHeld, wasHeld := s.holdsTerm(name, term)
	if isHeld {
		return decodeStep(rec, size)
	}
	if !wasHeld {
		s.logUnknownAccount("records", name)
	}
	return ingest.Step{Type: ingest.Skip, Size: size}
}

// logUnknownAccount counts what an agent says of an account that it does not have.
func (s *session) logUnknownAccount(what string, account vedette.AccountName) {
	if n, ok := s.server.unknownAccountLog.Allow(); ok {
		s.log.Warn("ignored message about an account that the agent does not have", "what", what,
			"account", vedette.CleanText(string(account), maxNameBytes), "count", n)
	}
}
