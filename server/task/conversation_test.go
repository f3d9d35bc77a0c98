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
	"github.com/vedette-io/vedette/server/task"
)

// TestConversations plays the scripts in testdata. A script says what is posted
// ("== POST /kubernetes/ops", then the body) and what the cluster answers, one
// answer after the other ("== answer apply", then an outcome; operations that no
// answer is left for are done). A first line "== output of all" makes tasks keep
// outputs. What the cluster was asked and what is told of
// the task stands below "== told", and is written by -update.
func TestConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			script, told, _ := strings.Cut(string(raw), "== told\n")
			var got string
			synctest.Test(t, func(t *testing.T) { got = play(t, script) })
			if *update {
				if err := os.WriteFile(file, []byte(script+"== told\n"+got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != told {
				t.Errorf("got\n%s\nwant\n%s", got, told)
			}
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

type answer struct {
	verb    vedette.Verb
	outcome vedette.Outcome
}

func play(t *testing.T, script string) string {
	book := newMemory()
	parts, output := sections(script), task.OutputOfNone
	if title, ok := strings.CutPrefix(parts[0].title, "output of "); ok {
		parts, output = parts[1:], map[string]task.OutputOf{"debug": task.OutputOfDebug, "all": task.OutputOfAll}[title]
	}
	s := newServer(task.Config{Store: book, Output: output})
	var told strings.Builder
	var answered []string
	var answers []answer
	var posts []section
	for _, part := range parts {
		verb, isAnswer := strings.CutPrefix(part.title, "answer ")
		if !isAnswer {
			posts = append(posts, part)
			continue
		}
		a := answer{verb: vedette.Verb(verb)}
		if err := json.Unmarshal([]byte(part.text), &a.outcome); err != nil {
			t.Fatalf("%s: %v", part.title, err)
		}
		answers = append(answers, a)
	}
	s.cluster.do = func(_ context.Context, op vedette.Operation) vedette.Outcome {
		fmt.Fprintf(&told, "%s in %s, within %s, for %s of %s\n%s\n", op.Args.Verb(), op.Account, time.Until(op.Deadline),
			op.User, ulids.ReplaceAllString(op.Origin, "ULID"), show(t, op.Args))
		if len(answers) == 0 || answers[0].verb != op.Args.Verb() {
			return done(op)
		}
		out := answers[0].outcome
		answers = answers[1:]
		return out
	}
	for _, post := range posts {
		method, path, _ := strings.Cut(post.title, " ")
		code, body := s.ask(t, method, path, post.text)
		synctest.Wait()
		answered = append(answered, body)
		if code != 200 {
			fmt.Fprintf(&told, "%d %s", code, indent(t, body))
			continue
		}
		id := ulids.FindString(body)
		_, body = s.ask(t, "GET", "/task/"+id, "")
		answered = append(answered, body)
		told.WriteString(ulids.ReplaceAllString(indent(t, body), "ULID"))
	}
	if len(answers) > 0 {
		t.Errorf("nobody asked for the answer to %s", answers[0].verb)
	}
	for _, where := range slices.Concat(book.all, answered, []string{s.log.String()}) {
		if strings.Contains(where, "hunter2") || strings.Contains(where, "aHVudGVyMg") {
			t.Errorf("a secret is told: %s", where)
		}
	}
	return told.String()
}

func indent(t *testing.T, body string) string {
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(body), "", " "); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return lines.ReplaceAllString(b.String(), `{"phase": $1, "status": $2}`)
}

// lines are those of a history, which are easier to read each in a line.
var lines = regexp.MustCompile(`\{\n +"phase": (".*"),\n +"status": (".*")\n +\}`)

// show writes arguments with their manifests and patches as JSON.
func show(t *testing.T, args vedette.Args) string {
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
