package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// commandBlock is a block of commands on a page.
var commandBlock = regexp.MustCompile("(?ms)^```(?:sh|bash|console|sql)\n(.*?)^```$")

// Why commands are run by no test.
const (
	needsReleases  = "make targets are run by developers and by the pipeline of releases"
	needsSystemd   = "systemd is not process 1 where the tests run; test/docs checks the files, and acts for systemctl"
	needsCloud     = "there is no cloud where the tests run; agent/cloud tests what the agent does with stand-ins for its services"
	needsSpinnaker = "make verify-clouddriver runs it against a real Clouddriver"
)

// testedPages are the pages of which a test runs all commands that the other table does not have.
var testedPages = map[string]string{
	"quickstart.md":         "tools/chart.TestQuickStart",
	"installation.md":       "tools/chart.TestInstallation",
	"manifests.md":          "tools/chart.TestInstallationWithoutHelm",
	"upgrade.md":            "tools/chart.TestInstallation",
	"troubleshooting.md":    "test/docs.TestSymptomsAreShownAsPrinted",
	"securing.md":           "test/docs.TestCertificatesAsDocumented",
	"backup.md":             "test/docs.TestBackupAndRestore",
	"disaster.md":           "test/docs.TestDatabaseIsLost",
	"operations.md":         "test/docs.TestOperationsAsDocumented, test/docs.TestContextsAsDocumented, test/docs.TestChecksAsDocumented",
	"artifacts.md":          "test/docs.TestChecksAsDocumented",
	"without-kubernetes.md": "test/docs.TestDowngradeIsRefusedAsDocumented",
	"../README.md":          "test/docs.TestOperationsAsDocumented, test/docs.TestContextsAsDocumented",
}

// otherCommands are blocks, by the beginning of their first line, that are tested in another way, or not at all.
var otherCommands = map[string]map[string]string{
	"quickstart.md": {"make build": "cmd/vedette.TestCommandsMatchKubectl starts it", "bin/vedette accounts": "cmd/vedette.TestCommandsMatchKubectl",
		"make release": "tools/release.TestReleasesHaveEqualBytes, tools/release.TestPushedImages"},
	"backup.md": {"kubectl -n spinnaker exec": "tools/chart/node.TestBackup", "kubectl -n spinnaker scale": "tools/chart/node.TestBackup"},
	"operations.md": {"kubectl port-forward": "test/journey.TestAdminPathsOfAnAgent sends these requests, without a pod",
		"go tool pprof": "a tool of Go reads what a handler of Go writes"},
	"without-kubernetes.md": {"dpkg -i": "tools/release.TestPackagesInstallAndRemove", "install -m": needsSystemd, "chown -R": needsSystemd,
		"journalctl": needsSystemd},
	"cloud-eks.md":     {"aws eks": needsCloud},
	"cloud-gke.md":     {"gcloud": needsCloud},
	"cloud-aks.md":     {"kubectl -n vedette": needsCloud, "az identity": needsCloud, "kubelogin": needsCloud},
	"upgrade.md":       {"apt install": "tools/release.TestPackagesInstallAndRemove installs and removes packages, by dpkg"},
	"compatibility.md": {"vedette compare-clouddriver": needsSpinnaker},
	"databases.md":     {"-- ": "test/databases creates its databases in this way", "helm upgrade vedette": "tools/chart/node.TestServers, with a database of its own"},
	"scaling.md":       {"ALTER ROLE": "test/replication.TestPgBouncer", "#!/bin/sh": "test/replication.TestGaleraFaults, with another user"},
	"development.md":   {"CREATE USER": needsReleases, "VEDETTE_TEST": needsReleases},
	"releases.md":      {"openssl ecparam": "tools/release.TestOpenSSLVerifiesChecksums", "base64 -d": "tools/release.TestOpenSSLVerifiesChecksums"},
	"spinnaker.md":     {"$ vedette accounts": "test/beside.TestMove does the same"},
	"../README.md":     {"bin/vedette-server": "test/docs.TestSymptomsAreShownAsPrinted starts both programs in this way", "$ bin/vedette": "test/demo.TestEverythingEnds starts the demo", "make build": "test/demo.TestEverythingEnds"},
}

// TestCommandsAreRun checks that each block of commands is run by a test, or that it is said why not.
func TestCommandsAreRun(t *testing.T) {
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, page := range append(pages, "../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range commandBlock.FindAllStringSubmatch(string(text), -1) {
			line, _, _ := strings.Cut(m[1], "\n")
			if testedPages[page] == "" && !isListed(page, line, used) {
				t.Errorf("%s: no test is named that runs %q: name it here, or why there is none", page, line)
			}
			isListed(page, line, used)
		}
	}
	for page, tests := range testedPages {
		checkNames(t, page, tests)
	}
	for page, lines := range otherCommands {
		for begin, tests := range lines {
			checkNames(t, page, tests)
			if !used[page+begin] {
				t.Errorf("%s has no commands that begin with %q", page, begin)
			}
		}
	}
}

// isListed reports whether a table has the first line of a block, and notes that it does.
func isListed(page, line string, used map[string]bool) bool {
	for begin := range otherCommands[page] {
		if strings.HasPrefix(line, begin) {
			used[page+begin] = true
			return true
		}
	}
	return false
}

var testName = regexp.MustCompile(`([\w/-]+)\.(Test\w+)`)

func checkNames(t *testing.T, page, tests string) {
	t.Helper()
	for _, m := range testName.FindAllStringSubmatch(tests, -1) {
		if !hasTest(t, filepath.Join("..", m[1]), m[2]) {
			t.Errorf("%s: %s has no %s", page, m[1], m[2])
		}
	}
}
