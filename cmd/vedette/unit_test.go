package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/client"
)

func TestParseResourceArgs(t *testing.T) {
	for _, tt := range []struct {
		args string
		want []resourceArg
	}{
		{"pods", []resourceArg{{kind: "pods"}}},
		{"pods,svc", []resourceArg{{kind: "pods"}, {kind: "svc"}}},
		{"pod a b", []resourceArg{{kind: "pod", name: "a"}, {kind: "pod", name: "b"}}},
		{"pod,svc a", []resourceArg{{kind: "pod", name: "a"}, {kind: "svc", name: "a"}}},
		{"pod/a svc/b", []resourceArg{{kind: "pod", name: "a"}, {kind: "svc", name: "b"}}},
		{"dev/Deployment.apps/shop/web", []resourceArg{{account: "dev", kind: "Deployment.apps", namespace: "shop", name: "web"}}},
		{"dev/Node/_/n1", []resourceArg{{account: "dev", kind: "Node", name: "n1"}}},
	} {
		got, err := parseResourceArgs(strings.Fields(tt.args))
		if err != nil || len(got) != len(tt.want) {
			t.Errorf("%s: %+v, %v", tt.args, got, err)
			continue
		}
		for i := range got {
			if got[i] != tt.want[i] {
				t.Errorf("%s: %+v, want %+v", tt.args, got[i], tt.want[i])
			}
		}
	}
	for _, args := range []string{"pods,", ",", "pod/", "/a", "a/b/c", "a/b/c/d/e", "pod/a svc", "pod a/b", "a//b/c"} {
		if got, err := parseResourceArgs(strings.Fields(args)); vedette.KindOf(err) != vedette.Invalid {
			t.Errorf("%s: %+v, %v; want an invalid error", args, got, err)
		}
	}
}

func FuzzParseResourceArgs(f *testing.F) {
	f.Add("pods", "a")
	f.Add("a/b/c/d", "e/f")
	f.Fuzz(func(t *testing.T, first, second string) {
		args, err := parseResourceArgs([]string{first, second})
		for _, arg := range args {
			if err == nil && (arg.kind == "" || strings.ContainsAny(arg.kind+arg.name, "/")) {
				t.Errorf("%q %q gave %+v", first, second, arg)
			}
		}
	})
}

func TestStaleWarning(t *testing.T) {
	lag := int64(40_400)
	for _, tt := range []struct {
		why  string
		f    client.FeedFreshness
		want string
	}{
		{"fresh", client.FeedFreshness{Account: "a", State: "live"}, ""},
		{"the agent is gone", client.FeedFreshness{Account: "prod-3", Kind: "Pod", State: "live", Stale: true, LagMs: &lag}, "prod-3: last heard from 40s ago"},
		{"forbidden", client.FeedFreshness{Account: "a", Kind: "Secret", State: "denied", Message: "no", Stale: true}, "a: Secret is denied (no); never heard from"},
		{"still reading, by namespace", client.FeedFreshness{Account: "a", Kind: "Pod", Namespace: "n", State: "syncing", Stale: true, LagMs: &lag}, "a: Pod in n is syncing; last heard from 40s ago"},
		{"not cached", client.FeedFreshness{Account: "a", Kind: "Job.batch", State: "absent"}, "a: does not cache Job.batch"},
	} {
		if got := staleWarning(tt.f); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.why, got, tt.want)
		}
	}
}

func TestStaleWarningsAreLimited(t *testing.T) {
	var b bytes.Buffer
	g := &getter{errOut: &b, warned: map[string]bool{}}
	var fresh []client.FeedFreshness
	for i := range 1000 {
		fresh = append(fresh, client.FeedFreshness{Account: fmt.Sprintf("prod-%d", i), State: "live", Stale: true})
	}
	g.warnStale(fresh)
	g.warnStale(fresh) // of the next page
	if lines := strings.Split(strings.TrimSpace(b.String()), "\n"); len(lines) != 11 || !strings.HasPrefix(lines[10], "and 990 more;") {
		t.Errorf("%d lines: %s", len(lines), b.String())
	}
}

// TestStatusColour paints a status and nothing else, keeps columns straight, and lets
// no cell move the cursor.
func TestStatusColour(t *testing.T) {
	var b bytes.Buffer
	out := newPrinter(&b)
	if out.colour {
		t.Error("a buffer is taken for a terminal")
	}
	out.colour = true
	l := newLayout(client.Columns{Kind: "Pod", Namespaced: true, Columns: []client.Column{{Name: "STATUS"}, {Name: "AGE"}}}, false, false)
	l.add(l.header())
	l.add(l.row(client.Row{Account: "a", Namespace: "n", Name: "p", Cells: []string{"Running", "\x1b[2J"}}))
	l.add(l.row(client.Row{Account: "a", Namespace: "n", Name: "q", Cells: []string{"CrashLoopBackOff", "1d"}}))
	out.table(l)
	if err := out.flush(); err != nil {
		t.Fatal(err)
	}
	want := "ACCOUNT   NAMESPACE   NAME   STATUS             AGE\n" +
		"a         n           p      \x1b[32mRunning\x1b[0m            ?[2J\n" +
		"a         n           q      \x1b[31mCrashLoopBackOff\x1b[0m   1d\n"
	if b.String() != want {
		t.Errorf("got\n%q\nwant\n%q", b.String(), want)
	}
}

func TestInvalidOptions(t *testing.T) {
	for args, want := range map[string]string{
		"get pods -A -n shop":                  "leave one out",
		"get pods --chunk-size 0":              "not between 1 and 5000",
		"get":                                  "requires at least 1 arg",
		"get pods --server :::":                "is not a URL",
		"get pods --server ftp://x":            "is not a URL",
		"get pods --server http://127.0.0.1:1": "nothing listens at http://127.0.0.1:1 (",
	} {
		_, _, err := runCLI(t.Context(), strings.Fields(args)...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
	_, _, err := runCLI(t.Context(), "get", "pods", "--server", "http://127.0.0.1:1")
	if err == nil || !strings.Contains(err.Error(), "start a server with `vedette up`") {
		t.Errorf("nobody is told how to start: %v", err)
	}
}
