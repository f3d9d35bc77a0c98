package version_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/vedette-io/vedette/agent/kube/version"
)

func TestVersionsThatWereNotTestedAreNamed(t *testing.T) {
	for gitVersion, want := range map[string]string{
		"v1.33.9": version.OlderThanTested, "v1.34.0": "", "v1.36.3-eks-4f4795d": "", "v1.35.4-gke.100": "", "v1.36.0+k3s1": "", "v1.36": "",
		"v1.37.0": version.NewerThanTested, "v1.137.0": version.NewerThanTested, "v2.0.0": version.NewerThanTested, "v0.36.0": version.OlderThanTested,
		"": "", "v1": "", "dev": "", "v1.36x": "", "v99999999999999999999.1.0": "",
	} {
		reason, message := version.Untested(gitVersion)
		if reason != want || (message == "") != (want == "") {
			t.Errorf("%q: got %q (%s), want %q", gitVersion, reason, message, want)
		}
	}
}

// TestTestedVersionsAreThoseOfTheControlPlanes compares the versions with the modules that build control planes.
func TestTestedVersionsAreThoseOfTheControlPlanes(t *testing.T) {
	modules, err := filepath.Glob("../../../test/controlplane/kubernetes*/go.mod")
	if err != nil || len(modules) < 3 {
		t.Fatalf("got modules %q, %v, want three", modules, err)
	}
	var minors []int
	for _, module := range modules {
		text, err := os.ReadFile(module)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`\sk8s\.io/kubernetes v1\.(\d+)\.`).FindSubmatch(text)
		if found == nil {
			t.Fatalf("%s requires no Kubernetes", module)
		}
		minor, err := strconv.Atoi(string(found[1]))
		if err != nil {
			t.Fatal(err)
		}
		minors = append(minors, minor)
	}
	oldest, newest := slices.Min(minors), slices.Max(minors)
	for minor := oldest - 1; minor <= newest+1; minor++ {
		reason, _ := version.Untested(fmt.Sprintf("v1.%d.0", minor))
		if isTested := slices.Contains(minors, minor); isTested != (reason == "") {
			t.Errorf("Kubernetes 1.%d is tested: %t, but got %q", minor, isTested, reason)
		}
	}
}
