// Package version knows with which versions of Kubernetes the agent was tested.
package version

import (
	"fmt"
	"regexp"
	"strconv"
)

// The minor versions of Kubernetes 1 with which the agent's tests run (docs/versions.md). test/controlplane builds them.
const (
	oldestTestedMinor = 34
	newestTestedMinor = 36
)

var versionPattern = regexp.MustCompile(`^v?(\d{1,4})\.(\d{1,4})(?:[.+-]|$)`)

// Reasons why a version of Kubernetes is not one of those that were tested.
const (
	OlderThanTested = "OlderThanTested"
	NewerThanTested = "NewerThanTested"
)

// Untested says why a version, as an API server calls itself, is not one with which the agent was tested. The reason is empty if it
// is one, or if it is not a version of Kubernetes.
func Untested(gitVersion string) (reason, message string) {
	found := versionPattern.FindStringSubmatch(gitVersion)
	if found == nil {
		return "", ""
	}
	major, _ := strconv.Atoi(found[1]) // digits, and few of them
	minor, _ := strconv.Atoi(found[2])
	what := "older"
	reason = OlderThanTested
	switch {
	case major > 1 || major == 1 && minor > newestTestedMinor:
		what = "newer"
		reason = NewerThanTested
	case major == 1 && minor >= oldestTestedMinor:
		return "", ""
	}
	return reason, fmt.Sprintf("Kubernetes %d.%d is %s than the versions with which this agent was tested, 1.%d to 1.%d: it goes on, and some of its kinds or fields may be missing",
		major, minor, what, oldestTestedMinor, newestTestedMinor)
}
