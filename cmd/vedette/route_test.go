package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/exit"
	"github.com/vedette-io/vedette/internal/cli/fanout"
	"github.com/vedette-io/vedette/internal/cli/manifests"
)

// annotated returns the manifest of a ConfigMap as output names its account.
func annotated(name, account string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: shop, uid: u, resourceVersion: '7', annotations: {vedette.io/account: %q}}\n", name, account)
}

// nameAndVersion returns the name and the resourceVersion of a manifest.
func nameAndVersion(t *testing.T, raw []byte) string {
	t.Helper()
	tree, err := manifests.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	metadata := manifests.EnsureMap(tree, "metadata")
	version, _ := metadata["resourceVersion"].(string)
	return fmt.Sprint(metadata["name"], " ", version)
}

func sortedJoin(all []string) string {
	slices.Sort(all)
	return strings.Join(all, "|")
}

// TestObjectsGoToTheirAccounts checks which accounts get which objects of a file.
func TestObjectsGoToTheirAccounts(t *testing.T) {
	plain := "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: shop}\n"
	for _, tt := range []struct {
		name, text, flags, want, wantErr string
	}{
		{"each to its own", annotated("a", "dev") + annotated("b", "prod-1"), "", "dev a 7|prod-1 b 7", ""},
		{"one account", annotated("a", "dev"), "", "dev a 7", ""},
		{"--account says otherwise", annotated("a", "dev") + annotated("b", "prod-1"), "--account dev", "dev a 7|dev b ", ""},
		{"--account with another one", annotated("a", "dev"), "--account prod-1", "prod-1 a ", ""},
		{"some name none", annotated("a", "dev") + plain, "", "", "does not name its account in the annotation vedette.io/account"},
		{"some name none but --account is given", annotated("a", "dev") + plain, "--account dev", "dev a 7|dev c ", ""},
		{"unknown account", annotated("a", "dev") + annotated("b", "gone"), "", "dev a 7", "configmap/b is of the account gone, which the server does not have"},
		{"a pattern is a name", annotated("a", "*") + annotated("b", "dev"), "", "dev b 7", "is of the account *, which"},
		{"a list is a name", annotated("a", "dev,prod-1"), "", "", "is of the account dev,prod-1, which"},
	} {
		for _, command := range []string{"apply", "create"} {
			t.Run(command+" "+tt.name, func(t *testing.T) {
				c := newFakeClusters()
				file := filepath.Join(t.TempDir(), "objects.yaml")
				if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
					t.Fatal(err)
				}
				args := append([]string{command, "-f", file, "--server", serveClusters(t, c)}, strings.Fields(tt.flags)...)
				_, errOut, err := runCLI(t.Context(), args...)
				if tt.wantErr != "" && (err == nil || !strings.Contains(errOut+err.Error(), tt.wantErr)) || tt.wantErr == "" && err != nil {
					t.Errorf("got %q, %v, want %q", errOut, err, tt.wantErr)
				}
				var got []string
				for _, op := range c.received {
					a := op.Args.(vedette.ApplyArgs)
					if bytes.Contains(a.Manifest, []byte(vedette.AccountAnnotation)) {
						t.Errorf("the annotation was sent: %s", a.Manifest)
					}
					got = append(got, string(op.Account)+" "+nameAndVersion(t, a.Manifest))
				}
				if text := sortedJoin(got); text != tt.want {
					t.Errorf("got %s, want %s", text, tt.want)
				}
			})
		}
	}
}

// TestFilesSelectObjectsOfTheirAccounts checks commands that take only the names of objects from files.
func TestFilesSelectObjectsOfTheirAccounts(t *testing.T) {
	c := newSampleClusters()
	file := filepath.Join(t.TempDir(), "objects.yaml")
	text := strings.ReplaceAll(annotated("api-1", "dev")+annotated("api-2", "prod-1")+annotated("api-2", "gone"), "ConfigMap", "Pod")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errOut, err := runCLI(t.Context(), "label", "a=b", "-f", file, "--server", serveClusters(t, c))
	if want := "dev: pod/api-1 labeled\nprod-1: pod/api-2 labeled\n"; out != want || !errors.Is(err, fanout.FailedError{Failed: 1, Total: 3}) ||
		!strings.Contains(errOut, "pod/api-2 is of the account gone") {
		t.Errorf("got %q, %q, %v, want %q", out, errOut, err, want)
	}
}

// TestDiffOfUnknownAccounts checks that a file whose accounts do not exist is an error, with the exit code of one.
func TestDiffOfUnknownAccounts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(file, []byte(annotated("a", "gone")), 0o600); err != nil {
		t.Fatal(err)
	}
	_, errOut, err := runCLI(t.Context(), "diff", "-f", file, "--server", serveClusters(t, newFakeClusters()))
	var exitErr exit.Error
	if !errors.As(err, &exitErr) || exitErr.Code != 2 || !strings.Contains(errOut, "configmap/a is of the account gone") {
		t.Errorf("got %q, %v, want the exit code 2", errOut, err)
	}
}

// TestIncompleteObjectsStay checks that an object that was printed without what redaction took is not sent to another account, where
// an apply would remove or overwrite that.
func TestIncompleteObjectsStay(t *testing.T) {
	secret := strings.ReplaceAll(annotated("s", "dev"), "ConfigMap", "Secret")
	redacted := annotated("r", "dev") + "data: {token: '[redacted]'}\n"
	for _, tt := range []struct{ text, flags, want, wantErr string }{
		{secret + annotated("a", "dev"), "--account prod-1", "prod-1 a ", "secret/s was printed by the account dev without its data"},
		{secret + annotated("a", "dev"), "--account dev,prod-1", "dev a 7|prod-1 a ", "secret/s was printed by the account dev without its data"},
		{secret, "--account dev", "dev s 7", ""},
		{secret, "", "dev s 7", ""},
		{secret + "data: {a: Yg==}\n", "--account prod-1", "prod-1 s ", ""},
		{redacted, "--account prod-1", "", "configmap/r was printed by the account dev with the text [redacted]"},
		{redacted, "", "dev r 7", ""},
	} {
		c := newFakeClusters()
		file := filepath.Join(t.TempDir(), "objects.yaml")
		if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		args := append([]string{"apply", "-f", file, "--server", serveClusters(t, c)}, strings.Fields(tt.flags)...)
		_, errOut, err := runCLI(t.Context(), args...)
		if (err != nil) != (tt.wantErr != "") || !strings.Contains(errOut, tt.wantErr) {
			t.Errorf("%s: got %q, %v, want %q", tt.flags, errOut, err, tt.wantErr)
		}
		var got []string
		for _, op := range c.received {
			got = append(got, string(op.Account)+" "+nameAndVersion(t, op.Args.(vedette.ApplyArgs).Manifest))
		}
		if text := sortedJoin(got); text != tt.want {
			t.Errorf("%s: got %s, want %s", tt.flags, text, tt.want)
		}
	}
}
