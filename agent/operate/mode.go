package operate

import (
	"strings"

	"github.com/vedette-io/vedette"
)

// When says whether something is done: always, never, or where a manifest's
// annotation asks for it.
type When string

// The values of When, as users write them.
const (
	Allowed When = "allowed" // the zero value means the same
	Always  When = "always"
	Never   When = "never"
)

// Mode says when manifests are merged by the API server. What is said for all
// kinds wins over what is said for one, and that over annotations, as in the
// predecessor.
type Mode struct {
	Enabled            When
	ClearManagedFields When
	Kinds              []KindMode
}

// KindMode is the Mode of one kind.
type KindMode struct {
	Kind               string // as a user writes it, "ConfigMap"
	Enabled            When
	ClearManagedFields When
}

// The annotations that ask for it.
const (
	annotationServerSide = "agent-k8s.armory.io/serverside-apply"         // true, enabled, force-conflicts
	annotationClear      = "agent-k8s.armory.io/ssa-clear-managed-fields" // true, enabled
)

// Validate refuses words that mean nothing.
func (m Mode) Validate() error {
	all := []When{m.Enabled, m.ClearManagedFields}
	for _, k := range m.Kinds {
		all = append(all, k.Enabled, k.ClearManagedFields)
	}
	for _, w := range all {
		switch strings.ToLower(string(w)) {
		case "", string(Allowed), string(Always), string(Never):
		default:
			return vedette.Errorf(vedette.Invalid, "serverSideApply says %q: write always, never or allowed", w)
		}
	}
	return nil
}

// settled returns what is decided without the manifest, and whether it is.
func settled(whens ...When) (bool, bool) {
	for _, w := range whens {
		switch strings.ToLower(string(w)) {
		case string(Always):
			return true, true
		case string(Never):
			return false, true
		}
	}
	return false, false
}

func (m Mode) of(r vedette.Resource) KindMode {
	for _, k := range m.Kinds {
		if r.Answers(k.Kind) {
			return k
		}
	}
	return KindMode{}
}

// never reports whether a kind is not to be merged by the API server at all.
func (m Mode) never(r vedette.Resource) bool {
	does, is := settled(m.Enabled, m.of(r).Enabled)
	return is && !does
}

// way is how one manifest is applied.
type way struct {
	serverSide bool
	force      bool // take over fields of other managers
	clear      bool // be the only manager
	compare    bool // with the version before
}

// choose decides how a manifest is applied.
func (m Mode) choose(r vedette.Resource, man manifest, s vedette.Strategy) way {
	kind := m.of(r)
	asked := strings.ToLower(man.annotation(annotationServerSide))
	w := way{force: s == vedette.ServerForce || asked == "force-conflicts"}
	if decided, is := settled(m.Enabled, kind.Enabled); is {
		w.serverSide = decided
	} else {
		w.serverSide = w.force || s == vedette.ServerSide || asked == "true" || asked == "enabled"
		if asked == "" && s == vedette.ByMode && bulky(r.Kind) {
			// Nobody asked: it must not fail where a client-side apply would not.
			w.serverSide, w.force = true, true
		}
	}
	if s == vedette.ClientSide {
		w.serverSide = false
	}
	if decided, is := settled(m.ClearManagedFields, kind.ClearManagedFields); is {
		w.clear = decided
	} else {
		switch strings.ToLower(man.annotation(annotationClear)) {
		case "true", "enabled":
			w.clear = true
		}
	}
	return w
}

// bulky reports whether a kind is applied by the API server unless something
// else is said: what does not fit twice into an object (the annotation of a
// client-side apply is a copy) or must not stand in it.
func bulky(k vedette.Kind) bool {
	return k == secretKind || k == vedette.Kind{Name: "ConfigMap"}
}
