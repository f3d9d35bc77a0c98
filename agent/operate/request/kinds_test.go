package request

import (
	"testing"

	"github.com/vedette-io/vedette"
)

// TestAPIVersionPathTraversalIsRejected rejects each apiVersion with which a proxy could resolve the path
// to another one, under which a Secret would have another group.
func TestAPIVersionPathTraversalIsRejected(t *testing.T) {
	for _, apiVersion := range []string{"..", "../v1", "a/..", "a/.", "./v1", "/", "/v1", "v1/", "a/b/c", "a/%2e%2e", "a?b/v1", "a/v1\n"} {
		_, err := new(Client).NewSender(vedette.Operation{}, Control{}).resolveInVersion(t.Context(), apiVersion, "Secret")
		if vedette.KindOf(err) != vedette.Invalid {
			t.Errorf("%q: got %v, want an error of kind Invalid", apiVersion, err)
		}
	}
}
