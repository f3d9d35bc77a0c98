package docs

import (
	"os"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/wire"
)

// rowsOfVerbs are the rows of data-that-leaves.md about what operations return besides their state and message.
var rowsOfVerbs = map[vedette.Verb]string{
	vedette.VerbGet: "objects that were read or written", vedette.VerbList: "objects that were read or written",
	vedette.VerbRecache: "objects that were read or written", vedette.VerbEvents: "objects that were read or written",
	vedette.VerbApply: "objects that were read or written", vedette.VerbPatch: "objects that were read or written",
	vedette.VerbScale: "objects that were read or written", vedette.VerbPause: "objects that were read or written",
	vedette.VerbResume: "objects that were read or written", vedette.VerbRestart: "objects that were read or written",
	vedette.VerbUndo: "objects that were read or written", vedette.VerbDelete: "result", vedette.VerbPrune: "objects that a prune leaves",
	vedette.VerbLogs: "logs of pods", vedette.VerbMetrics: "resource usage", vedette.VerbHistory: "revisions of a workload",
	vedette.VerbStatus: "progress of a rollout", vedette.VerbDiscover: "kinds of the cluster", vedette.VerbVersion: "version of an artifact",
	vedette.VerbAccess: "permissions of the agent",
}

// rowsOfMessages are the rows about the parts of an agent's messages; empty for a part that is listed by its own parts.
var rowsOfMessages = map[proto.Message]map[string]string{
	&wire.AgentMessage{}: {"hello": "connection", "register": "account", "deregister": "account", "data": "", "account_error": "account errors",
		"alive": "heartbeats", "config_status": "configuration status", "conditions": "conditions"},
	&wire.Record{}: {"account": "account", "term": "heartbeats", "feed": "kinds", "declare": "kinds", "begin": "state of feeds", "upsert": "`apiVersion`, `kind`",
		"delete": "`metadata`", "drop": "`metadata`", "end": "state of feeds", "bookmark": "state of feeds", "status": "state of feeds",
		"heartbeat": "heartbeats", "verify": "verification", "verified": "verification"},
	&wire.OperationsUp{}: {"attach": "connection", "outcome": ""},
	&wire.Outcome{}: {"id": "result", "state": "result", "status": "result", "reason": "result", "message": "message, warnings", "keys": "result", "uids": "result", "absent": "result",
		"objects": "objects that were read or written", "result": "", "fresh_kind": "kinds", "fresh": "objects that were read or written",
		"unchanged": "result", "warnings": "message, warnings", "changes": "what changed", "awaited": "result"},
}

// TestDataThatLeavesIsComplete checks that data-that-leaves.md has a row for the answer to each verb, and for each part of
// what an agent sends. A new one needs a decision about what it may contain, and about what the strict preset does to it.
func TestDataThatLeavesIsComplete(t *testing.T) {
	text, err := os.ReadFile("data-that-leaves.md")
	if err != nil {
		t.Fatal(err)
	}
	check := func(what, row string, isKnown bool) {
		t.Helper()
		if !isKnown || row != "" && !strings.Contains(string(text), "\n| "+row) {
			t.Errorf("%s: data-that-leaves.md has no row %q about it", what, row)
		}
	}
	for _, spec := range vedette.Verbs() {
		row, isKnown := rowsOfVerbs[spec.Verb]
		check("the answer to the verb "+string(spec.Verb), row, isKnown)
	}
	for message, rows := range rowsOfMessages {
		fields := message.ProtoReflect().Descriptor().Fields()
		for i := range fields.Len() {
			row, isKnown := rows[string(fields.Get(i).Name())]
			check(string(fields.Get(i).FullName()), row, isKnown)
		}
	}
}
