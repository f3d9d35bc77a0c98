package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const formerValues = `replicas: 2
kubeconfigs:
  east: {file: "users: [{user: {token: HIDDEN-kubeconfig}}]\n"}
config:
  clouddriver: {grpc: "server:9091", insecure: true, auth: {token: HIDDEN-token}}
env: [{name: A_TOKEN, value: HIDDEN-env}]
`

// TestMigrateValues checks that secrets get into files that only the user can read, and from there into Secrets by the printed commands.
func TestMigrateValues(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("old.yml", []byte(formerValues), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errOut, err := runCLI(t.Context(), "migrate", "values", "old.yml", "--secrets-to", "secrets")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"replicas: 2", "secret: east-kubeconfig", "configSecret: spin-armory-agent-config", `address: "server:9091"`} {
		if !strings.Contains(out, want) {
			t.Errorf("the values do not contain %q:\n%s", want, out)
		}
	}
	if strings.Contains(out+errOut, "HIDDEN") {
		t.Errorf("a secret is printed:\n%s\n%s", out, errOut)
	}
	if want := "old.yml:3: kubeconfigs.east.file is secret"; !strings.Contains(errOut, want) {
		t.Errorf("got the notes %s, want %q", errOut, want)
	}
	// The commands work: a stand-in prints what kubectl would read.
	kubectl := "#!/bin/sh\nfor a in \"$@\"; do case $a in --from-file=*) echo \"$5 ${a#*=}:\"; cat \"${a#*=*=}\";; esac; done\n"
	if err := os.WriteFile("kubectl", []byte(kubectl), 0o700); err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	for line := range strings.Lines(errOut) {
		if command, ok := strings.CutPrefix(line, "  kubectl "); ok {
			script.WriteString("./kubectl " + command)
		}
	}
	read, err := exec.CommandContext(t.Context(), "sh", "-c", script.String()).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, read)
	}
	for _, want := range []string{"config=secrets/east-kubeconfig/config:\nusers: [{user: {token: HIDDEN-kubeconfig}}]\n",
		"A_TOKEN=secrets/spin-armory-agent-env/A_TOKEN:\nHIDDEN-env", "token: HIDDEN-token"} {
		if !strings.Contains(string(read), want) {
			t.Errorf("the commands read\n%s\nwant %q", read, want)
		}
	}
	err = filepath.WalkDir("secrets", func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %s", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := runCLI(t.Context(), "migrate", "values", "old.yml", "--secrets-to", "secrets"); err == nil || !strings.Contains(err.Error(), "secrets exists") {
		t.Errorf("got %v, want an error that the directory exists", err)
	}
}

// TestMigrateBadValues checks what the command says about files that it cannot convert, and that nothing is printed then.
func TestMigrateBadValues(t *testing.T) {
	directory := t.TempDir()
	file := filepath.Join(directory, "old.yml")
	if err := os.WriteFile(file, []byte("replicas: 1\nunknown: HIDDEN\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	secrets := filepath.Join(directory, "secrets")
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{file, "--secrets-to", secrets}, "old.yml: line 2: unknown is not a value of the chart agent-k8s-full"},
		{[]string{filepath.Join(directory, "missing")}, "no such file"},
		{[]string{directory}, "is a directory"},
		{[]string{"/dev/zero"}, "more than 1048576 bytes"},
		{nil, "accepts 1 arg"},
	} {
		out, _, err := runCLI(t.Context(), append([]string{"migrate", "values"}, test.args...)...)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "HIDDEN") {
			t.Errorf("%v: got %v, want it to say %q", test.args, err, test.want)
		}
		if out != "" {
			t.Errorf("%v: printed %s", test.args, out)
		}
	}
	if _, err := os.Stat(secrets); err == nil {
		t.Error("the directory for secrets was created")
	}
}
