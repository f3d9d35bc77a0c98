package upstream

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/vedette-io/vedette"
)

// checkReading rejects a request whose path the upstream Clouddriver may read in another way than this
// server, so that it would answer for an account of agents, with its own permissions, or take an
// operation that this server never saw. Of both readings the decision must be the same: Orca sends
// empty segments, where it is.
func (h *Handler) checkReading(r *http.Request, found route) error {
	path := springPath(r.URL)
	for _, reading := range []string{path, withoutSuffix(path)} {
		other := findRoute(h.table, r.Method, reading)
		if other.Mode != PassedOn && (other.Mode != found.Mode || !sameDecision(other, found)) {
			return vedette.Errorf(vedette.Invalid, "the path %.300q can be read as %s in two ways: send it without semicolons, encoded or empty segments, "+
				"slashes at its end and a suffix of a format", r.URL.EscapedPath(), other.name())
		}
	}
	return nil
}

// withoutSuffix returns a path without the suffix of a format at its end, which older versions of Spring
// do not match with a pattern. They remove any suffix, but other names may have dots.
func withoutSuffix(path string) string {
	for _, suffix := range []string{".json", ".xml"} {
		if shorter, found := strings.CutSuffix(path, suffix); found {
			return shorter
		}
	}
	return path
}

// sameDecision reports whether two readings of one path name the same account, provider, task, application, and artifact account or
// operation.
func sameDecision(a, b route) bool {
	params := []string{accountParam, providerParam, taskParam}
	switch a.Mode {
	case Merged:
		params = append(params, appParam)
	case ByArtifact, ByOperations:
		params = append(params, nameParam)
	case Local, PassedOn, ByAccount, ByProvider, ByTask, ByBody:
	}
	for _, param := range params {
		if a.params[param] != b.params[param] {
			return false
		}
	}
	return true
}

// springPath returns an escaped path as Spring may match it: without what follows a semicolon in a
// segment, also if that is escaped, without empty segments, and with escaped slashes as slashes.
func springPath(u *url.URL) string {
	var clean strings.Builder
	for segment := range strings.FieldsFuncSeq(u.Path, func(r rune) bool { return r == '/' || r == '\\' }) {
		segment, _, _ = strings.Cut(segment, ";")
		clean.WriteString("/" + url.PathEscape(segment))
	}
	return clean.String()
}
