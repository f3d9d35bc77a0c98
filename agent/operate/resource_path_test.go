package operate

import (
	"testing"

	"github.com/vedette-io/vedette"
)

// TestAPIVersionPathTraversalIsRejected refuses an apiVersion with which a path would be
// another one for a proxy that resolves it, under which a Secret would be of another group.
func TestAPIVersionPathTraversalIsRejected(t *testing.T) {
	for _, apiVersion := range []string{"..", "../v1", "a/..", "a/.", "./v1", "/", "/v1", "v1/", "a/b/c", "a/%2e%2e", "a?b/v1", "a/v1\n"} {
		_, err := testRun().resolveInVersion(t.Context(), apiVersion, "Secret")
		if vedette.KindOf(err) != vedette.Invalid {
			t.Errorf("%q: got %v, want an error of kind Invalid", apiVersion, err)
		}
	}
}
