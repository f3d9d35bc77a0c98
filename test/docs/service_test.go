package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/test/process"
)

var withoutKubernetes = &page{path: "../../docs/without-kubernetes.md"}

const unitDir = "../../deploy/systemd"

// example is a block of a page whose first line is a comment with the name of a file, or of what the block does.
var example = regexp.MustCompile("(?ms)^```(?:yaml|ini|sh)\n# ([^\n]+)\n(.*?)^```$")

// example returns the block of a page with a name.
func (p *page) example(t *testing.T, name string) string {
	t.Helper()
	for _, m := range example.FindAllStringSubmatch(p.read(t), -1) {
		if m[1] == name {
			return m[2]
		}
	}
	t.Fatalf("%s has no example %q", p.path, name)
	return ""
}

// needs skips the test if a program is missing.
func needs(t *testing.T, program, installedBy string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%v: %s installs it", err, installedBy)
	}
}

// installUnits copies the services to a directory, with the credentials of the page, and with our programs.
func installUnits(t *testing.T) (dir string) {
	t.Helper()
	if err := build(); err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	for _, name := range []string{"vedette-server.service", "vedette-agent.service"} {
		text, err := os.ReadFile(filepath.Join(unitDir, name))
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, name), strings.ReplaceAll(string(text), "/usr/local/bin", binDir))
	}
	credentials := withoutKubernetes.example(t, "/etc/systemd/system/vedette-server.service.d/credentials.conf")
	writeFile(t, filepath.Join(dir, "vedette-server.service.d/credentials.conf"), credentials)
	return dir
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// maxExposure limits the rating of `systemd-analyze security`, times ten, by any version of systemd.
const maxExposure = "20"

var ratings = regexp.MustCompile(`systemd (\d+) rates both at (\d\.\d) of 10`)

// TestUnitsAreConfinedAsDocumented checks the services as systemd reads them, and that they are confined as much as the page says.
func TestUnitsAreConfinedAsDocumented(t *testing.T) {
	t.Parallel()
	needs(t, "systemd-analyze", "the package systemd")
	dir := installUnits(t)
	rating := ratings.FindStringSubmatch(withoutKubernetes.read(t))
	if rating == nil {
		t.Fatal("the page does not say how systemd rates the services")
	}
	version, err := exec.CommandContext(t.Context(), "systemd-analyze", "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"vedette-server.service", "vedette-agent.service"} {
		file := filepath.Join(dir, name)
		out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", file).CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Errorf("systemd-analyze verify %s: %v\n%s", name, err, out)
		}
		out, err = exec.CommandContext(t.Context(), "systemd-analyze", "security", "--offline=yes", "--threshold="+maxExposure, "--no-pager", file).CombinedOutput()
		if err != nil {
			t.Errorf("systemd-analyze security %s: %v\n%s", name, err, out)
		}
		if exposure := "level for " + name + ": " + rating[2] + " "; strings.HasPrefix(string(version), "systemd "+rating[1]+" ") && !strings.Contains(string(out), exposure) {
			t.Errorf("systemd-analyze security %s: want %s\n%s", name, rating[2], out)
		}
	}
}

// TestUsersAndDirectories creates the users and directories below another root, and checks that the directories are those
// that the services and the page name.
func TestUsersAndDirectories(t *testing.T) {
	t.Parallel()
	needs(t, "systemd-sysusers", "the package systemd")
	if os.Geteuid() != 0 {
		t.Skip("only root can create directories of other users")
	}
	root := t.TempDir()
	writeFile(t, filepath.Join(root, "etc/passwd"), "root:x:0:0::/root:/bin/sh\n")
	for _, name := range []string{"vedette-server", "vedette-agent"} {
		for _, kind := range []string{"sysusers", "tmpfiles"} {
			text, err := os.ReadFile(filepath.Join(unitDir, name+"."+kind+".conf"))
			if err != nil {
				t.Fatal(err)
			}
			writeFile(t, filepath.Join(root, "usr/lib", kind+".d", name+".conf"), string(text))
		}
		for _, args := range [][]string{{"systemd-sysusers", "--root=" + root, name + ".conf"},
			{"systemd-tmpfiles", "--root=" + root, "--create", name + ".conf"}} {
			if out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
				t.Fatalf("%q: %v\n%s", args, err, out)
			}
		}
	}
	users, err := os.ReadFile(filepath.Join(root, "etc/passwd"))
	if err != nil {
		t.Fatal(err)
	}
	page := withoutKubernetes.read(t)
	for _, name := range []string{"vedette-server", "vedette-agent"} {
		unit, err := os.ReadFile(filepath.Join(unitDir, name+".service"))
		if err != nil {
			t.Fatal(err)
		}
		settings := unitSettings(string(unit))
		if user := settings["User"][0]; !strings.Contains(string(users), "\n"+user+":") && !strings.HasPrefix(string(users), user+":") {
			t.Errorf("%s runs as %s, who is not among the users\n%s", name, user, users)
		}
		directories := []string{"/var/lib/" + settings["StateDirectory"][0], "/var/log/" + settings["LogsDirectory"][0],
			filepath.Dir(settings["ExecStart"][0][strings.LastIndex(settings["ExecStart"][0], " ")+1:])}
		for _, dir := range directories {
			if !strings.Contains(page, "`"+dir+"`") {
				t.Errorf("the page does not name %s of %s", dir, name)
			}
		}
	}
	for _, dir := range []string{"etc/vedette/server", "etc/vedette/server/tls", "etc/vedette/agent", "etc/vedette/agent/tls", "etc/vedette/agent/kubeconfigs"} {
		if info, err := os.Stat(filepath.Join(root, dir)); err != nil || info.Mode().Perm() != 0o750 {
			t.Errorf("%s: %v, %v, want a directory with mode 0750", dir, info, err)
		}
	}
	if info, err := os.Stat(filepath.Join(root, "var/backups/vedette")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("backups: %+v, %v, want a directory with mode 0700", info, err)
	}
}

// unitSettings returns the values of a unit by name.
func unitSettings(unit string) map[string][]string {
	settings := map[string][]string{}
	for line := range strings.Lines(unit) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), "="); found && !strings.HasPrefix(line, "#") {
			settings[name] = append(settings[name], value)
		}
	}
	return settings
}

// TestServicesRun starts both programs with the configurations of the page, and with the arguments, the variables and the
// credentials of the services, and stops them within the time that the services have.
func TestServicesRun(t *testing.T) {
	t.Parallel()
	w := newScenario(t, options{})
	ca := newAuthority(t)
	for _, dir := range []string{"server/tls", "agent/tls", "agent/kubeconfigs"} {
		if err := os.MkdirAll(w.path("/etc/vedette/"+dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	ca.write(w, "/etc/vedette/server/tls/agents-ca.crt")
	ca.write(w, "/etc/vedette/agent/tls/ca.crt")
	ca.issueValid(w, "/etc/vedette/server/tls/tls", "vedette-server")
	ca.issueValid(w, "/etc/vedette/agent/tls/tls", "agent-eu")
	writeFile(t, w.path("/etc/vedette/agent/kubeconfigs/prod-eu.yml"), w.kubeconfig(""))
	w.write("/etc/vedette/server/admin-token", "a token of operators")
	w.write("/etc/vedette/server/secrets.yml", withoutKubernetes.example(t, "/etc/vedette/server/secrets.yml: root, mode 0600"))

	server := withoutKubernetes.example(t, "/etc/vedette/server/vedette-server.yml") +
		withoutKubernetes.example(t, "/etc/vedette/server/vedette-server.yml, in addition")
	agent := strings.ReplaceAll(withoutKubernetes.example(t, "/etc/vedette/agent/armory-agent.yml"), "vedette.example.com:9091", w.grpcAddress)
	w.write("/etc/vedette/server/vedette-server.yml", w.reveal(server)+w.serverPorts)
	w.write("/etc/vedette/agent/armory-agent.yml", w.reveal(agent)+w.agentPorts)
	w.server, w.agent = w.service("vedette-server"), w.service("vedette-agent")
	w.start()
	w.awaitOutput("vedette accounts --server https://localhost:7002 --cacert /etc/vedette/agent/tls/ca.crt", "Ready")
	w.awaitOutput("curl -s --cacert /etc/vedette/agent/tls/ca.crt -H 'Authorization: Bearer a token of operators' https://localhost:7002/config", "adminTokenFile")
	w.agent.Stop()
	w.server.Stop()
}

// service returns the program of a service, with what systemd would give it.
func (w *scenario) service(name string) *process.Program {
	w.t.Helper()
	unit, err := os.ReadFile(filepath.Join(unitDir, name+".service"))
	if err != nil {
		w.t.Fatal(err)
	}
	settings := unitSettings(string(unit))
	command := strings.Fields(w.reveal(settings["ExecStart"][0]))
	variables := []string{"CREDENTIALS_DIRECTORY=" + w.path("/etc/vedette/server")}
	for _, variable := range settings["Environment"] {
		variables = append(variables, w.reveal(strings.ReplaceAll(variable, "%H", "host-1")))
	}
	if !slices.Contains(settings["Type"], "exec") {
		w.t.Errorf("%s has the type %q; the programs do not notify systemd", name, settings["Type"])
	}
	p := w.program(name)
	p.Path, p.Args = "/usr/bin/env", slices.Concat(variables, []string{p.Path}, command[1:])
	return p
}
