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

// recordDecoder decodes the record stream of an agent into steps for the pipeline.
// Until the agent has an account, it accepts only heartbeats, and holds no decoder for
// the agent.
type recordDecoder struct {
	session       *session
	ctx           context.Context
	pipeline      *ingest.Pipeline
	buffered      []*wire.Data // the open frame, until the agent has an account
	bufferedBytes int          // of buffered
	hasAccount    bool         // the agent has, or had, an account
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

// put passes a step to the pipeline when the budget of its source allows it.
func (r *recordDecoder) put(step ingest.Step) error {
	if step.Type != ingest.Heartbeat { // heartbeats are not acknowledged
		if err := r.session.unstored.add(r.ctx, step.Size); err != nil {
			return err
		}
	}
	return r.pipeline.Put(r.ctx, step)
}

func decodeError(err error) error {
	if vedette.KindOf(err) == vedette.Unavailable {
		return err // the server is out of memory; the stream is valid
	}
	return vedette.Errorf(vedette.Invalid, "read the agent's records: %w", err)
}

// Reserve implements wire.Budget.
func (r *recordDecoder) Reserve(n int) error { return r.session.share.reserve(r.ctx, n) }

// Release implements wire.Budget.
func (r *recordDecoder) Release(n int) { r.session.share.release(n) }

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

// buffer keeps a piece until the agent has an account. If the frame ends before that,
// only its heartbeats are used.
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

// maxFrameHeartbeats is the maximum number of heartbeats in a frame. An agent ends its
// frame after a few.
const maxFrameHeartbeats = 64

// putHeartbeats passes on the heartbeats of an agent without accounts. Other records
// are ignored, because a correct agent sends none.
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
// small. All agents without accounts share one decoder, so that idle agents cost no
// memory.
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

// toStep converts a record if this session has its account in the term of the record.
// Other records are skipped: their account was lost while they were in transit, or
// belongs to another agent. They still count, because records are acknowledged by
// number.
func (r *recordDecoder) toStep(rec *wire.Record, size int) ingest.Step {
	s := r.session
	if p := rec.GetHeartbeat(); p != nil {
		step := decodeStep(rec, size)
		now := time.Now()
		step.Time = r.clock.completeUntil(p, now)
		step.Ages = s.ages(p, r.clock.sentAt(p, now))
		s.heartbeatRead(p, now)
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

// ages returns the ages in a heartbeat of accounts that this session has in the term that they name; nil
// if the agent does not know them. Others take no memory.
func (s *session) ages(h *wire.AgentHeartbeat, sentAt time.Time) map[vedette.AccountName]vedette.AccountAge {
	if !h.GetListsAccounts() || h.AgeMillis == nil {
		return nil
	}
	ages := map[vedette.AccountName]vedette.AccountAge{}
	at := func(millis *int64) time.Time {
		if millis == nil {
			return time.Time{}
		}
		return sentAt.Add(-boundedMillis(*millis))
	}
	for _, a := range h.GetAccounts() {
		name, term := vedette.AccountName(a.GetAccount()), vedette.Term(a.GetTerm())
		if holds, _ := s.holdsTerm(name, term); holds {
			ages[name] = vedette.AccountAge{Term: term, Live: at(a.LiveMillis), All: at(a.AllMillis)}
		}
	}
	return ages
}

// logUnknownAccount logs a message about an account that the agent does not have, at
// most once a minute.
func (s *session) logUnknownAccount(what string, account vedette.AccountName) {
	if n, ok := s.server.unknownAccountLog.Allow(); ok {
		s.log.Warn("ignored message about an account that the agent does not have", "what", what,
			"account", vedette.CleanText(string(account), maxNameBytes), "count", n)
	}
}
