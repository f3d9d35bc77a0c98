package web

import (
	"strings"
	"testing"

	"github.com/vedette-io/vedette/server/manifest"
)

func FuzzMatchPath(f *testing.F) {
	f.Add("/manifests/prod//node%20node-1")
	f.Add("/manifests/%zz/a")
	f.Fuzz(func(t *testing.T, path string) {
		p, ok := MatchPath("manifests/{account}/{location}/{name}", path)
		if ok && (len(p) != 3 || strings.Count(path, "/") < 3) {
			t.Errorf("%q: got %v", path, p)
		}
		if kind, object, err := manifest.SplitName(p["name"]); err == nil && (kind == "" || object == "") {
			t.Errorf("%q: got %q and %q, want two names", p["name"], kind, object)
		}
	})
}
