package agentserver_test

import (
	"fmt"
	"strings"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/wire"
)

// startOperation executes an operation and records its outcome: id account verb.
func (ts *testServer) startOperation(id, account, verb string) {
	target := vedette.Target{Kind: "deployment", Namespace: "default", Name: "web"}
	args := map[string]vedette.Args{
		"get": vedette.GetArgs{Target: target}, "get-bytes": vedette.GetArgs{Target: vedette.Target{Kind: "pod", Name: "\xff"}}, "scale": vedette.ScaleArgs{Target: target, Replicas: 3}, "restart": vedette.RestartArgs{Target: target},
		"logs":  vedette.LogsArgs{Target: vedette.Target{Namespace: "default", Name: "web-0"}},
		"apply": vedette.ApplyArgs{Manifest: []byte(strings.Repeat("x", 200_000))},
	}[verb]
	go func() {
		out := ts.dispatch.Execute(ts.ctx, vedette.Operation{ID: vedette.OperationID(id), Account: vedette.AccountName(account), Args: args})
		text := ""
		if out.Stream != nil {
			text = readStream(out)
		}
		ts.record("%s is %s %d %s%s", out.ID, out.State, out.Status, out.Message, text)
	}()
}

func readStream(out vedette.Outcome) string {
	defer out.Stream.Close()
	buf := make([]byte, 100)
	n, err := out.Stream.Read(buf)
	return fmt.Sprintf("reading %q, %v", buf[:n], err)
}

// attachOperations opens the agent's operation stream: process [session].
func (ta *testAgent) attachOperations(args []string) {
	stream, err := wire.NewOperationsClient(ta.conn).Serve(ta.ctx)
	if err != nil {
		ta.stage.t.Fatal(err)
	}
	session := ta.session
	if len(args) > 1 {
		session = args[1]
	}
	if namedAgent := ta.stage.agents[session]; namedAgent != nil { // an agent stands for its session
		session = namedAgent.session
	}
	ta.operations = stream
	if err := stream.Send(&wire.OperationsUp{Message: &wire.OperationsUp_Attach{Attach: &wire.Attach{Process: args[0], Session: session}}}); err != nil {
		ta.stage.t.Fatal(err)
	}
	go ta.receiveOperations()
}

func (ta *testAgent) receiveOperations() {
	var joiner wire.Joiner
	for parts := 1; ; parts++ {
		m, err := ta.operations.Recv()
		if err != nil {
			reason := status.Convert(err).Message()
			if ta.ctx.Err() != nil { // either side may end it first
				reason = ta.ctx.Err().Error()
			}
			ta.stage.record("%s: operation stream ended: %s", ta.name, reason)
			return
		}
		m, err = joiner.Join(m)
		if err != nil {
			ta.stage.t.Error(err)
		}
		if m == nil {
			continue
		}
		switch m := m.GetMessage().(type) {
		case *wire.OperationsDown_Operation:
			op := wire.ToOperation(m.Operation, ta.stage.now())
			ta.stage.record("%s: operation %s: %s in %s, timeout %v, parts: %d", ta.name, op.ID, op.Args.Verb(), op.Account, op.Deadline.Sub(ta.stage.now()), parts)
		case *wire.OperationsDown_Cancel:
			ta.stage.record("%s: cancel %s", ta.name, m.Cancel.GetId())
		case *wire.OperationsDown_Forget:
			ta.stage.record("%s: forget %s", ta.name, m.Forget.GetId())
		}
		parts = 0
	}
}

// sendOutcome sends an outcome: id state [object@version | big | log].
func (ta *testAgent) sendOutcome(id string, args []string) {
	out := vedette.Outcome{ID: vedette.OperationID(id), State: vedette.OutcomeState(args[0]), Status: 200}
	if args[0] == "failed" {
		out.Status, out.Message = 409, strings.Join(args[1:], " ")
	}
	form := ""
	if len(args) > 1 && args[0] == "done" {
		form = args[1]
	}
	switch form {
	case "big":
		out.Message = strings.Repeat("a long answer. ", 100_000)[:40] + "and so on"
		out.Result = []byte(strings.Repeat("x", 300_000))
		b, err := proto.Marshal(wire.FromOutcome(out))
		if err != nil {
			ta.stage.t.Fatal(err)
		}
		go ta.sendAnswer(id, false, b)
		return
	case "log":
		go ta.sendAnswer(id, true, []byte("one line\n"))
		return
	}
	if name, version, ok := strings.Cut(form, "@"); ok {
		out.CacheObject = &vedette.Object{Key: vedette.Key{Kind: vedette.Kind{Name: "Pod"}, Namespace: "default", Name: name},
			UID: "uid-" + name, ResourceVersion: version, APIVersion: "v1", Body: []byte(`{"v":` + version + `}`)}
	}
	if err := ta.operations.Send(&wire.OperationsUp{Message: &wire.OperationsUp_Outcome{Outcome: wire.FromOutcome(out)}}); err != nil {
		ta.stage.record("%s can't answer: %v", ta.name, err)
	}
}

func (ta *testAgent) sendAnswer(id string, log bool, b []byte) {
	stream, err := wire.NewOperationsClient(ta.conn).Answer(ta.ctx)
	if err != nil {
		ta.stage.t.Error(err)
		return
	}
	pieces := 0
	w := wire.NewAnswerWriter(&wire.AnswerPiece{Session: ta.session, Operation: id, Log: log}, func(piece *wire.AnswerPiece) error {
		pieces++
		return stream.Send(piece)
	})
	_, _ = w.Write(b)
	_ = w.Flush()
	if !log {
		_ = w.Close(nil)
	}
	_, err = stream.CloseAndRecv()
	ta.stage.record("answer stream of %s for %s: %v", ta.name, id, status.Convert(err).Message())
}
