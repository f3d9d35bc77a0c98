package watch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/internal/nearest"
)

// Problem says which selected kinds a cluster does not serve, and which may have been meant. It
// returns "" if the selection is served completely.
func (s Selection) Problem(cat kube.Catalogue) string {
	feeds, unserved := s.Feeds(cat)
	return describeSelectionProblem(cat, unserved, len(feeds))
}

// maxNamedKinds is how many kinds a message names, because an account may select thousands.
const maxNamedKinds = 5

// confirmUnserved returns the kinds that are certainly not served. Discovery that is
// incomplete says nothing about the kinds of the groups that it omits, so such kinds are
// not reported unless they were before.
func (w *Watcher) confirmUnserved(unserved, unknownGroups []string) []string {
	return slices.DeleteFunc(slices.Clone(unserved), func(name string) bool {
		if slices.Contains(w.unservedKinds, name) {
			return false
		}
		_, group, _ := strings.Cut(name, ".")
		return w.rechecks > 0 || group != "" && slices.Contains(unknownGroups, group)
	})
}

// describeSelectionProblem says which selected kinds the cluster does not serve, and which
// kinds may have been meant. It returns "" if there is no problem.
func describeSelectionProblem(cat kube.Catalogue, unserved []string, feeds int) string {
	if len(unserved) == 0 && feeds > 0 {
		return ""
	}
	if len(unserved) == 0 {
		return "the account's configuration selects nothing in this cluster: " +
			"check kinds, omitKinds, namespaces, omitNamespaces and onlyNamespacedResources"
	}
	var problems []string
	for _, name := range unserved[:min(len(unserved), maxNamedKinds)] {
		problems = append(problems, describeUnservedKind(cat, name))
	}
	if more := len(unserved) - len(problems); more > 0 {
		problems = append(problems, fmt.Sprintf("and %d more kinds", more))
	}
	return strings.Join(problems, "; ")
}

func describeUnservedKind(cat kube.Catalogue, name string) string {
	var candidates []string
	for _, r := range cat.Resources {
		if r.Matches(name) {
			return fmt.Sprintf("the kind %.100q is never watched, because it is not part of a cluster's state", name)
		}
		candidates = append(candidates, nameLike(r.Kind, name))
	}
	slices.Sort(candidates)
	return fmt.Sprintf("the cluster does not serve the kind %.100q%s", name, nearest.Hint(name, slices.Compact(candidates)))
}

func nameLike(kind vedette.Kind, name string) string {
	if strings.Contains(name, ".") {
		return kind.String()
	}
	return kind.Name
}
