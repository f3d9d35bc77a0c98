package vedette

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// ServedKind is a kind as the discovery of a cluster describes it.
type ServedKind struct {
	Resource
	Versions   []string // that the cluster serves, the preferred one first
	Categories []string // groups of kinds that a user can name together, for example "all"
	Verbs      []string // empty if the agent does not report them
}

// Allows reports whether the kind has a verb. An agent of an earlier version reports no verbs, and only kinds that
// can be read.
func (k ServedKind) Allows(verb string) bool {
	return len(k.Verbs) == 0 || slices.Contains(k.Verbs, verb)
}

// IsListedIn reports whether the kind can be listed and belongs to a category, in any case.
func (k ServedKind) IsListedIn(category string) bool {
	return slices.ContainsFunc(k.Categories, func(c string) bool { return strings.EqualFold(c, category) }) && k.Allows("list")
}

// KindMatch is what a name of a kind means.
type KindMatch[K any] struct {
	// Kinds have the same right to the name, in the order of the cluster's groups. kubectl takes the first one.
	Kinds []K
	// Version is the version that the name contains, as in deployments.v1.apps; empty if it contains none.
	Version string
}

// FindKinds returns the kinds that a name from a user means, by the rules of kubectl:
//
//   - A name is a plural, a singular, a kind or a short name, in any case. It may be followed by the group, or by the
//     version and the group: deployments.apps, deployments.v1.apps.
//   - The whole name of one kind comes before the short name of another.
//   - Kinds of several groups are returned in the order of the argument, which is that of the cluster's discovery.
//
// KIND.VERSION.GROUP is tried before KIND with the group VERSION.GROUP, as kubectl does. Who does not know all kinds of the cluster cannot
// tell which of them it is, see GroupHasVersion.
//
// It differs in three points. The names of Kubernetes' own kinds, short ones too, never mean another kind: otherwise "po"
// would mean pods in one cluster and something else in the next, and discovery would be needed before each read. And
// the beginning of a group does not stand for the group, because the kinds may not be all that the cluster serves. The name
// of a kind counts like its singular, also if the kind has another one; kubectl takes it last.
//
// The function of returns the resource of a kind and its versions; without versions it has the one of the resource.
func FindKinds[K any](kinds []K, name string, of func(K) (Resource, []string)) KindMatch[K] {
	short, rest, _ := strings.Cut(name, ".")
	if short == "" || !isASCII(name) { // Unicode has letters that are equal to ASCII's except for their case
		return KindMatch[K]{}
	}
	if version, group, found := strings.Cut(rest, "."); found {
		if best := bestKinds(kinds, kindName{short, group, version}, of); len(best) > 0 {
			return KindMatch[K]{best, strings.ToLower(version)}
		}
		if best := bestKinds(kinds, kindName{short: short, group: group}, of); isShortName(best, short, of) {
			return KindMatch[K]{Kinds: best} // kubectl ignores versions after short names
		}
	}
	return KindMatch[K]{Kinds: bestKinds(kinds, kindName{short: short, group: rest}, of)}
}

// GroupHasVersion reports whether a group begins like a version of Kubernetes, as v1.example.org does. KIND.GROUP then may mean a kind of
// the rest of the group, in that version: that is what it means in clusters that serve this, also if they serve the group.
func GroupHasVersion(group string) bool {
	version, rest, _ := strings.Cut(group, ".")
	return rest != "" && versionPattern.MatchString(version)
}

var versionPattern = regexp.MustCompile(`^(?i)v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`)

// isShortName reports whether the best kinds for a name have it as a short name.
func isShortName[K any](best []K, name string, of func(K) (Resource, []string)) bool {
	if len(best) == 0 {
		return false
	}
	r, _ := of(best[0])
	return !r.hasName(name)
}

type kindName struct{ short, group, version string }

// bestKinds returns the kinds with the best rank.
func bestKinds[K any](kinds []K, name kindName, of func(K) (Resource, []string)) []K {
	var found []K
	var best kindRank
	for _, k := range kinds {
		r, versions := of(k)
		rank, ok := name.rank(r, versions)
		switch order := rank.compare(best); {
		case !ok || found != nil && order > 0:
		case found == nil || order < 0:
			found, best = []K{k}, rank
		default:
			found = append(found, k)
		}
	}
	return preferExact(found, name.short, of)
}

// kindRank says how well a name matches. Lower is better.
type kindRank struct {
	isForeign bool // not Kubernetes' own group
	isShort   bool // a short name
	group     int
}

func (r kindRank) compare(o kindRank) int {
	return cmp.Or(compareBool(r.isForeign, o.isForeign), compareBool(r.isShort, o.isShort), cmp.Compare(r.group, o.group))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func (n kindName) rank(r Resource, versions []string) (kindRank, bool) {
	rank := kindRank{isForeign: !IsNativeGroup(r.Kind.Group), isShort: !r.hasName(n.short), group: groupRank(r.Kind.Group)}
	if rank.isShort && !r.hasShortName(n.short) {
		return rank, false
	}
	if n.version != "" && !strings.EqualFold(n.version, r.Version) &&
		!slices.ContainsFunc(versions, func(v string) bool { return strings.EqualFold(n.version, v) }) {
		return rank, false
	}
	return rank, n.group == "" || strings.EqualFold(n.group, r.Kind.Group)
}

// groupRank orders the groups of Kubernetes: the core group first, and last the one whose kinds moved to others.
func groupRank(group string) int {
	switch group {
	case "":
		return 0
	case "extensions":
		return 2
	}
	return 1
}

// preferExact keeps those kinds of one group whose name is exactly the name, if there are any: a group can have kinds that
// differ by case. The order of one group does not decide between them.
func preferExact[K any](found []K, name string, of func(K) (Resource, []string)) []K {
	if len(found) < 2 {
		return found
	}
	first, _ := of(found[0])
	var exact []K
	for _, k := range found {
		r, _ := of(k)
		if r.Kind.Group != first.Kind.Group {
			return found
		}
		if r.Kind.Name == name {
			exact = append(exact, k)
		}
	}
	if exact == nil {
		return found
	}
	return exact
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 })
}

func (r Resource) hasName(name string) bool {
	return strings.EqualFold(name, r.Kind.Name) || strings.EqualFold(name, r.Plural) || r.Singular != "" && strings.EqualFold(name, r.Singular)
}

func (r Resource) hasShortName(name string) bool {
	return slices.ContainsFunc(r.ShortNames, func(short string) bool { return strings.EqualFold(name, short) })
}
