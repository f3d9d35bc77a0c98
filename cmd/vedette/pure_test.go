package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/client"
)

func TestParseTargets(t *testing.T) {
	for _, tt := range []struct {
		args string
		want []target
	}{
		{"pods", []target{{kind: "pods"}}},
		{"pods,svc", []target{{kind: "pods"}, {kind: "svc"}}},
		{"pod a b", []target{{kind: "pod", name: "a"}, {kind: "pod", name: "b"}}},
		{"pod,svc a", []target{{kind: "pod", name: "a"}, {kind: "svc", name: "a"}}},
		{"pod/a svc/b", []target{{kind: "pod", name: "a"}, {kind: "svc", name: "b"}}},
		{"dev/Deployment.apps/shop/web", []target{{account: "dev", kind: "Deployment.apps", namespace: "shop", name: "web"}}},
		{"dev/Node/_/n1", []target{{account: "dev", kind: "Node", name: "n1"}}},
	} {
		got, err := parseTargets(strings.Fields(tt.args))
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
		if got, err := parseTargets(strings.Fields(args)); vedette.KindOf(err) != vedette.Invalid {
			t.Errorf("%s: %+v, %v; want an invalid error", args, got, err)
		}
	}
}

func FuzzParseTargets(f *testing.F) {
	f.Add("pods", "a")
	f.Add("a/b/c/d", "e/f")
	f.Fuzz(func(t *testing.T, first, second string) {
		targets, err := parseTargets([]string{first, second})
		for _, target := range targets {
			if err == nil && (target.kind == "" || strings.ContainsAny(target.kind+target.name, "/")) {
				t.Errorf("%q %q gave %+v", first, second, target)
			}
		}
	})
}

func TestWarning(t *testing.T) {
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
		if got := warning(tt.f); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.why, got, tt.want)
		}
	}
}

func TestWarningsAreFew(t *testing.T) {
	var b bytes.Buffer
	g := &getter{errOut: &b, told: map[string]bool{}}
	var fresh []client.FeedFreshness
	for i := range 1000 {
		fresh = append(fresh, client.FeedFreshness{Account: fmt.Sprintf("prod-%d", i), State: "live", Stale: true})
	}
	g.warn(fresh)
	g.warn(fresh) // of the next page
	if lines := strings.Split(strings.TrimSpace(b.String()), "\n"); len(lines) != 11 || !strings.HasPrefix(lines[10], "and 990 more;") {
		t.Errorf("%d lines: %s", len(lines), b.String())
	}
}

// TestColour paints a status and nothing else, keeps columns straight, and lets
// no cell move the cursor.
func TestColour(t *testing.T) {
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

func TestOptions(t *testing.T) {
	for args, want := range map[string]string{
		"get pods -A -n shop":                  "leave one out",
		"get pods --chunk-size 0":              "not between 1 and 5000",
		"get":                                  "requires at least 1 arg",
		"get pods --server :::":                "no URL like",
		"get pods --server ftp://x":            "no URL like",
		"get pods --server http://127.0.0.1:1": "nothing listens at http://127.0.0.1:1 (",
	} {
		_, _, err := run(t.Context(), strings.Fields(args)...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
	_, _, err := run(t.Context(), "get", "pods", "--server", "http://127.0.0.1:1")
	if err == nil || !strings.Contains(err.Error(), "start a server with `vedette up`") {
		t.Errorf("nobody is told how to start: %v", err)
	}
}
