package differ

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/manifests"
)

func runDiffer(t *testing.T, name, from, to string) (differ bool, out string, err error) {
	t.Helper()
	var b bytes.Buffer
	d, err := New(&b, &b, "LIVE", "MERGED")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Add(name, from, to); err != nil {
		t.Fatal(err)
	}
	dir := d.dir
	differ, err = d.Run(t.Context())
	d.Close()
	if _, statErr := os.Stat(dir); !os.IsNotExist(statErr) {
		t.Errorf("the directory %s was left: %v", dir, statErr)
	}
	return differ, b.String(), err
}

func TestDifferencesAreShownForAnyName(t *testing.T) {
	for _, tt := range []struct{ name, from, to, want string }{
		{"a", "one\n", "one\n", ""},
		{"a", "one\n", "two\n", "-one\n+two\n"},
		{"a", "", "two\n", "+two\n"},
		{"a", "one\n", "", "-one\n"},
		{"../../../a/b", "one\n", "two\n", "-one\n+two\n"},
		{strings.Repeat("ü", 1000), "one\n", "two\n", "-one\n+two\n"},
		{"\xff\x00-", "one\n", "two\n", "-one\n+two\n"},
		{"-rf", "one\n", "two\n", "-one\n+two\n"},
	} {
		differ, out, err := runDiffer(t, tt.name, tt.from, tt.to)
		if differ != (tt.want != "") || err != nil || !strings.HasSuffix(out, tt.want) {
			t.Errorf("%.20q: got %v, %v, %s", tt.name, differ, err, out)
		}
	}
}

// TestVariableNamesTheDiffProgram checks the variable: its parameters, its exit codes, and what happens without the program.
func TestVariableNamesTheDiffProgram(t *testing.T) {
	script := filepath.Join(t.TempDir(), "differ")
	for _, tt := range []struct {
		value, code, want string
		differ, fails     bool
	}{
		{script + " -x --long=y a;b", "1", "-x --long=y LIVE MERGED\n", true, false},
		{script, "0", "LIVE MERGED\n", false, false},
		{script, "2", "LIVE MERGED\n", false, true},
		{"/no/such/program", "0", "", false, true},
		{"no-such-program", "0", "", false, true},
	} {
		if err := os.WriteFile(script, []byte("#!/bin/sh\necho \"$@\"\nexit "+tt.code+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv(variable, tt.value)
		differ, out, err := runDiffer(t, "a", "one", "two")
		if differ != tt.differ || (err != nil) != tt.fails || out != tt.want {
			t.Errorf("%s %s: got %v, %v, %q", tt.value, tt.code, differ, err, out)
		}
	}
}

// TestInterruptEndsProgram checks that an interrupt ends a program that does not end by itself, with a child that keeps the output
// open.
func TestInterruptEndsProgram(t *testing.T) {
	script := filepath.Join(t.TempDir(), "differ")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nsleep 60 &\necho begun\nwait\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv(variable, script)
	ctx, cancel := context.WithCancel(t.Context())
	d, err := New(writerFunc(cancel), io.Discard, "LIVE", "MERGED")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	begin := time.Now()
	if _, err := d.Run(ctx); !errors.Is(err, context.Canceled) || time.Since(begin) > 30*time.Second {
		t.Errorf("got %v after %s, want %v", err, time.Since(begin), context.Canceled)
	}
}

// writerFunc is called for each write.
type writerFunc func()

func (f writerFunc) Write(text []byte) (int, error) {
	f()
	return len(text), nil
}

// TestLongNamesStayDifferent checks that objects with long names that begin alike are all compared.
func TestLongNamesStayDifferent(t *testing.T) {
	var out bytes.Buffer
	d, err := New(&out, &out, "LIVE", "MERGED")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, last := range []string{"a", "b"} {
		if err := d.Add(strings.Repeat("x", 250)+last, "", "of "+last+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Run(t.Context()); err != nil || !strings.Contains(out.String(), "+of a\n") || !strings.Contains(out.String(), "+of b\n") {
		t.Errorf("got %s, %v", out.String(), err)
	}
}

func TestRemoveClusterFields(t *testing.T) {
	tree, err := manifests.Decode([]byte(`{"kind":"Service","metadata":{"name":"web","uid":"1","resourceVersion":"2","managedFields":[],
		"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"x"}},"spec":{"clusterIP":"10.0.0.1","clusterIPs":[],"ports":[{"port":80,"nodePort":30000}]},"status":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	RemoveClusterFields(tree)
	if got, _ := Text(tree); got != "kind: Service\nmetadata:\n  name: web\nspec:\n  ports:\n  - port: 80\n" {
		t.Errorf("got %s", got)
	}
	RemoveClusterFields(Object{"metadata": "odd", "spec": 7, "kind": "Service"}) // must not panic
	RemoveClusterFields(nil)
	hidden, err := Text(Object{"a": "b\u202ec\x1b"})
	if err != nil || strings.ContainsAny(hidden, "\u202e\x1b") {
		t.Errorf("got %q, %v", hidden, err)
	}
}

func TestValuesOfSecretsAreMasked(t *testing.T) {
	preview := vedette.SecretPreview{Keys: map[string]vedette.DataChange{"same": vedette.DataUnchanged, "other": vedette.DataChanged, "new": vedette.DataAdded, "gone": vedette.DataRemoved}}
	live, merged := Object{}, Object{}
	MaskSecret(live, merged, preview)
	before, _ := Text(live)
	after, _ := Text(merged)
	if before != "data:\n  gone: '***'\n  other: '*** (before)'\n  same: '***'\n" || after != "data:\n  new: '***'\n  other: '*** (after)'\n  same: '***'\n" {
		t.Errorf("got\n%s\n%s", before, after)
	}
	MaskSecret(nil, Object{}, preview)
}
