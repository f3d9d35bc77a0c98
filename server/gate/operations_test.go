package gate_test

import (
	"fmt"
	"strings"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/wire"
)

// ask has an operation carried out: id account verb. Its outcome is said.
func (s *stage) ask(id, account, verb string) {
	web := vedette.Target{Kind: "deployment", Namespace: "default", Name: "web"}
	args := map[string]vedette.Args{
		"get": vedette.GetArgs{Target: web}, "get-bytes": vedette.GetArgs{Target: vedette.Target{Kind: "pod", Name: "\xff"}}, "scale": vedette.ScaleArgs{Target: web, Replicas: 3}, "restart": vedette.RestartArgs{Target: web},
		"logs":  vedette.LogsArgs{Target: vedette.Target{Namespace: "default", Name: "web-0"}},
		"apply": vedette.ApplyArgs{Manifest: []byte(strings.Repeat("x", 200_000))},
	}[verb]
	go func() {
		out := s.dispatch.Execute(s.ctx, vedette.Operation{ID: vedette.OperationID(id), Account: vedette.AccountName(account), Args: args})
		text := ""
		if out.Stream != nil {
			text = read(out)
		}
		s.say("%s is %s %d %s%s", out.ID, out.State, out.Status, out.Message, text)
	}()
}

func read(out vedette.Outcome) string {
	defer out.Stream.Close()
	buf := make([]byte, 100)
	n, err := out.Stream.Read(buf)
	return fmt.Sprintf("reading %q, %v", buf[:n], err)
}

// attach opens the agent's stream of operations: process [session].
func (p *player) attach(words []string) {
	stream, err := wire.NewOperationsClient(p.conn).Serve(p.ctx)
	if err != nil {
		p.stage.t.Fatal(err)
	}
	session := p.session
	if len(words) > 1 {
		session = words[1]
	}
	if other := p.stage.agents[session]; other != nil { // whose session it is to be
		session = other.session
	}
	p.operations = stream
	if err := stream.Send(&wire.OperationsUp{Message: &wire.OperationsUp_Attach{Attach: &wire.Attach{Process: words[0], Session: session}}}); err != nil {
		p.stage.t.Fatal(err)
	}
	go p.listenForOperations()
}

func (p *player) listenForOperations() {
	var joiner wire.Joiner
	for parts := 1; ; parts++ {
		m, err := p.operations.Recv()
		if err != nil {
			why := status.Convert(err).Message()
			if p.ctx.Err() != nil { // both ends end it
				why = p.ctx.Err().Error()
			}
			p.stage.say("%s: takes no operations: %s", p.name, why)
			return
		}
		if m, err = joiner.Join(m); err != nil {
			p.stage.t.Error(err)
		}
		if m == nil {
			continue
		}
		switch m := m.GetMessage().(type) {
		case *wire.OperationsDown_Operation:
			op := wire.ToOperation(m.Operation, p.stage.now())
			p.stage.say("%s: is to do %s: %s in %s, within %v, in %d parts", p.name, op.ID, op.Args.Verb(), op.Account, op.Deadline.Sub(p.stage.now()), parts)
		case *wire.OperationsDown_Cancel:
			p.stage.say("%s: may drop %s", p.name, m.Cancel.GetId())
		case *wire.OperationsDown_Forget:
			p.stage.say("%s: may forget %s", p.name, m.Forget.GetId())
		}
		parts = 0
	}
}

// answer sends an outcome: id state [object@version | big | log].
func (p *player) answer(id string, words []string) {
	out := vedette.Outcome{ID: vedette.OperationID(id), State: vedette.OutcomeState(words[0]), Status: 200}
	if words[0] == "failed" {
		out.Status, out.Message = 409, strings.Join(words[1:], " ")
	}
	how := ""
	if len(words) > 1 && words[0] == "done" {
		how = words[1]
	}
	switch how {
	case "big":
		out.Message = strings.Repeat("a long answer. ", 100_000)[:40] + "and so on"
		out.Result = []byte(strings.Repeat("x", 300_000))
		b, err := proto.Marshal(wire.FromOutcome(out))
		if err != nil {
			p.stage.t.Fatal(err)
		}
		go p.answerApart(id, false, b)
		return
	case "log":
		go p.answerApart(id, true, []byte("one line\n"))
		return
	}
	if name, version, ok := strings.Cut(how, "@"); ok {
		out.Fresh = &vedette.Object{Key: vedette.Key{Kind: vedette.Kind{Name: "Pod"}, Namespace: "default", Name: name},
			UID: "uid-" + name, ResourceVersion: version, APIVersion: "v1", Body: []byte(`{"v":` + version + `}`)}
	}
	if err := p.operations.Send(&wire.OperationsUp{Message: &wire.OperationsUp_Outcome{Outcome: wire.FromOutcome(out)}}); err != nil {
		p.stage.say("%s can't answer: %v", p.name, err)
	}
}

func (p *player) answerApart(id string, log bool, b []byte) {
	stream, err := wire.NewOperationsClient(p.conn).Answer(p.ctx)
	if err != nil {
		p.stage.t.Error(err)
		return
	}
	pieces := 0
	w := wire.NewAnswerWriter(&wire.AnswerPiece{Session: p.session, Operation: id, Log: log}, func(piece *wire.AnswerPiece) error {
		pieces++
		return stream.Send(piece)
	})
	_, _ = w.Write(b)
	_ = w.Flush()
	if !log {
		_ = w.Close(nil)
	}
	_, err = stream.CloseAndRecv()
	p.stage.say("apart, %s answers %s: %v", p.name, id, status.Convert(err).Message())
}
