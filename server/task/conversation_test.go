package task_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/golden"
	"github.com/vedette-io/vedette/server/task"
)

// TestConversationsRunAsRecorded plays the scripts in testdata. A script has a request
// ("== POST /kubernetes/ops", then the body) and the responses of the cluster in
// order ("== answer apply", then an outcome; further operations are done). If its
// first line is "== output of all", tasks keep outputs. The operations and the
// resulting task are below "== result", which -update writes.
func TestConversationsRunAsRecorded(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("got no scripts, error %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			script, _, _ := strings.Cut(string(raw), "== result\n")
			var got string
			synctest.Test(t, func(t *testing.T) { got = play(t, script) })
			golden.Compare(t, file, script+"== result\n"+got)
		})
	}
}

// section is a part of a script.
type section struct{ title, text string }

func sections(script string) []section {
	var all []section
	for _, part := range strings.Split("\n"+script, "\n== ")[1:] {
		title, text, _ := strings.Cut(part, "\n")
		all = append(all, section{title, text})
	}
	return all
}

type scriptedAnswer struct {
	verb    vedette.Verb
	outcome vedette.Outcome
}

func play(t *testing.T, script string) string {
	memory := newMemoryStore()
	parts, output := sections(script), task.OutputNone
	if title, ok := strings.CutPrefix(parts[0].title, "output of "); ok {
		parts, output = parts[1:], map[string]task.OutputPolicy{"debug": task.OutputDebug, "all": task.OutputAll}[title]
	}
	s := newServer(task.Config{Store: memory, Output: output})
	var transcript strings.Builder
	var responses []string
	var scripted []scriptedAnswer
	var posts []section
	for _, part := range parts {
		verb, isScripted := strings.CutPrefix(part.title, "answer ")
		if !isScripted {
			posts = append(posts, part)
			continue
		}
		a := scriptedAnswer{verb: vedette.Verb(verb)}
		if err := json.Unmarshal([]byte(part.text), &a.outcome); err != nil {
			t.Fatalf("%s: %v", part.title, err)
		}
		scripted = append(scripted, a)
	}
	s.cluster.do = func(_ context.Context, op vedette.Operation) vedette.Outcome {
		fmt.Fprintf(&transcript, "%s in %s, within %s, for %s of %s\n%s\n", op.Args.Verb(), op.Account, time.Until(op.Deadline),
			op.Requester.User, ulidPattern.ReplaceAllString(op.Origin, "ULID"), formatArgs(t, op.Args))
		if len(scripted) == 0 || scripted[0].verb != op.Args.Verb() {
			return doneOutcome(op)
		}
		out := scripted[0].outcome
		scripted = scripted[1:]
		return out
	}
	for _, post := range posts {
		method, path, _ := strings.Cut(post.title, " ")
		code, body := s.request(t, method, path, post.text)
		synctest.Wait()
		responses = append(responses, body)
		if code != 200 {
			fmt.Fprintf(&transcript, "%d %s", code, indent(t, body))
			continue
		}
		id := ulidPattern.FindString(body)
		_, body = s.request(t, "GET", "/task/"+id, "")
		responses = append(responses, body)
		transcript.WriteString(ownerPattern.ReplaceAllString(ulidPattern.ReplaceAllString(indent(t, body), "ULID"), `"ownerId": "UUID@`))
	}
	if len(scripted) > 0 {
		t.Errorf("the answer to %s was not requested", scripted[0].verb)
	}
	for _, text := range slices.Concat(memory.storedBodies, responses, []string{s.log.String()}) {
		if strings.Contains(text, "hunter2") || strings.Contains(text, "aHVudGVyMg") {
			t.Errorf("a secret is visible: %s", text)
		}
	}
	return transcript.String()
}

func indent(t *testing.T, body string) string {
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(body), "", " "); err != nil {
		t.Fatalf("invalid JSON: %v: %s", err, body)
	}
	return historyLines.ReplaceAllString(b.String(), `{"phase": $1, "status": $2}`)
}

// historyLines matches the lines of a history, which are easier to read if each is on one
// line.
var historyLines = regexp.MustCompile(`\{\n +"phase": (".*"),\n +"status": (".*")\n +\}`)

// ownerPattern matches the beginning of the owner of a task.
var ownerPattern = regexp.MustCompile(`"ownerId": "[^"@]+@`)

// formatArgs formats arguments with their manifests and patches as JSON.
func formatArgs(t *testing.T, args vedette.Args) string {
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		t.Fatal(err)
	}
	for name, value := range members {
		if s := string(value); s == `""` || s == "null" || s == "false" {
			delete(members, name)
		}
	}
	switch a := args.(type) {
	case vedette.ApplyArgs:
		members["Manifest"] = a.Manifest
	case vedette.VersionArgs:
		members["Manifest"] = a.Manifest
	case vedette.PatchArgs:
		members["Patch"] = a.Patch
	}
	raw, err = json.MarshalIndent(members, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
