package main

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/vedette-io/vedette/server/readtest"
)

// complete returns what is offered for the last argument, and the error output, where a shell shows nothing.
func complete(t *testing.T, args ...string) string {
	t.Helper()
	out, _, err := runCLI(t.Context(), append([]string{"__completeNoDesc"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return strings.Join(lines[:len(lines)-1], " ") + " " + lines[len(lines)-1]
}

func TestCompletionSuggestsWhatExists(t *testing.T) {
	w := newShopWorld(t)
	w.Put("prod-1", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"billing"}}`)
	w.Put("dev", readtest.Pod("shop", `web-$(reboot)`, "web"), readtest.Pod("shop", "web-`x`", "web"))
	server := serve(t, w)
	config := filepath.Join(t.TempDir(), "config.yml")
	if err := os.WriteFile(config, []byte("contexts:\n- {name: staging, server: http://a}\n- {name: prod, server: http://b}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("VEDETTE_CONFIG", config)
	for _, tt := range []struct{ name, args, want string }{
		{"accounts", "get --account p", "prod-1 prod-3 :4"},
		{"the last of several accounts", "get --account dev,prod-3,d", "dev,prod-3,dev :4"},
		{"accounts as arguments", "accounts pro", "prod-1 prod-3 :4"},
		{"only one account", "accounts release dev p", " :4"},
		{"kinds", "get dep", "deployments :4"},
		{"the last of several kinds", "get pods,n", "pods,namespaces pods,nodes :4"},
		{"names", "get pods we", "web-6c9f4-aaaaa :4"},
		{"names that are not given already", "get pods web-6c9f4-aaaaa we", " :4"},
		{"names of an account", "delete pods --account prod-1 b", "broken-0 :4"},
		{"names in a namespace", "get -n billing pods ", "invoice-0 :4"},
		{"KIND/NAME", "rollout restart deploy/w", "deploy/web :4"},
		{"a path", "get prod-1/pods/shop/b", "prod-1/pods/shop/broken-0 :4"},
		{"the namespace of a path", "get prod-1/pods/s", "prod-1/pods/shop/ :6"},
		{"namespaces", "apply -n ", "billing shop :4"},
		{"pods of logs", "logs bro", "broken-0 :4"},
		{"objects of Events", "events --for no", "nodes/ :6"},
		{"the object of Events", "events --for pods/br", "pods/broken-0 :4"},
		{"kinds of feeds", "feeds --kind po", "pods :4"},
		{"contexts", "get --context s", "staging :4"},
		{"contexts as arguments", "config use-context ", "prod staging :4"},
		{"formats", "get -o js", "json jsonpath-as-json= jsonpath-file= jsonpath= :4"},
		{"one format with a template", "get -o jsonpath-a", "jsonpath-as-json= :6"},
		{"formats of lists", "accounts -o ", "json name wide yaml :4"},
		{"states", "ops --status ", "done failed lost pending :4"},
		{"files", "apply -f ", " :0"},
		{"nothing", "ops --agent ", " :4"},
		{"an unknown kind", "get zebras w", " :4"},
	} {
		args := strings.Split(tt.args, " ")
		args = append(append([]string{args[0], "--server", server}, args[1:len(args)-1]...), args[len(args)-1])
		if tt.name == "contexts" {
			args = strings.Split(tt.args, " ")
		}
		got, want := strings.Fields(complete(t, args...)), strings.Fields(tt.want)
		for deadline := time.Now().Add(time.Minute); len(got) < len(want) && time.Now().Before(deadline); {
			got = strings.Fields(complete(t, args...)) // nothing is offered after a second, which a busy machine may take
		}
		if !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
			t.Errorf("%s: %s: got %q, want %q", tt.name, tt.args, got, want)
		}
	}
}

// TestCompletionIsSilent completes against servers that do not answer: one that accepts connections and hangs, and one that
// is not there.
func TestCompletionIsSilent(t *testing.T) {
	hanging, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hanging.Close() })
	for name, server := range map[string]string{"hanging": "http://" + hanging.Addr().String(), "missing": "http://127.0.0.1:1", "invalid": ":::"} {
		out, errOut, err := runCLI(t.Context(), "__complete", "get", "--server", server, "pods", "")
		if err != nil || strings.TrimSpace(out) != ":4" || strings.TrimSpace(errOut) != "Completion ended with directive: ShellCompDirectiveNoFileComp" {
			t.Errorf("%s: got %q, %q, %v, want nothing", name, out, errOut, err)
		}
	}
}

// TestEverythingIsCompleted checks that no argument and no flag offers the files of the working directory by accident.
func TestEverythingIsCompleted(t *testing.T) {
	files := []string{"filename", "cacert", "cert", "key", "token-file", "config", "kubeconfig", "patch-file", "grpc-cert", "grpc-key", "grpc-client-ca"}
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			if c.ValidArgsFunction == nil {
				t.Errorf("%s: its arguments are not completed", c.CommandPath())
			}
			c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
				if _, ok := c.GetFlagCompletionFunc(f.Name); !ok && f.Value.Type() != "bool" && !slices.Contains(files, f.Name) {
					t.Errorf("%s --%s: its value is not completed", c.CommandPath(), f.Name)
				}
			})
			check(c)
		}
	}
	check(newRoot())
}

func TestEachShellGetsAScript(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		out, _, err := runCLI(t.Context(), "completion", shell)
		if err != nil || !strings.Contains(out, "__complete") {
			t.Errorf("%s: got %d bytes, %v, want a script", shell, len(out), err)
		}
	}
}
