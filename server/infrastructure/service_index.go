package infrastructure

import (
	"maps"
	"slices"

	"github.com/vedette-io/vedette"
)

// serviceIndex finds the Services of a workload. A namespace can have thousands of both, so it
// does not compare each with each: a Service is found by one entry of its selector.
type serviceIndex struct {
	byName    map[serviceKey]*Object
	byEntry   []map[selectorEntry][]*Object // a map for each list, sorted
	fullNames map[*Object]string
}

// maxServices limits the Services of one workload. Anyone who can create Services in a namespace
// decides how many select a workload, and their number times that of workloads could fill the
// memory.
const maxServices = 250

type serviceKey struct {
	account         vedette.AccountName
	namespace, name string
}

// selectorEntry is one label of a Service's selector.
type selectorEntry struct {
	account          vedette.AccountName
	namespace        string
	label, wantValue string
}

// newServiceIndex indexes Services; other kinds and a second row of a Service are left out. If a
// workload has too many, those of the first lists count.
func newServiceIndex(lists ...[]*Object) serviceIndex {
	x := serviceIndex{byName: map[serviceKey]*Object{}, fullNames: map[*Object]string{}}
	for _, list := range lists {
		x.byEntry = append(x.byEntry, indexByEntry(x.addNames(list)))
	}
	return x
}

// addNames returns those Services of a list that are new, sorted.
func (x *serviceIndex) addNames(list []*Object) []*Object {
	var services []*Object
	for _, s := range slices.SortedFunc(slices.Values(list), compareObjects) {
		key := serviceKey{s.Account, s.Namespace, s.Name}
		if s.Kind == service && x.byName[key] == nil {
			x.byName[key], x.fullNames[s] = s, FullName(s)
			services = append(services, s)
		}
	}
	return services
}

func indexByEntry(services []*Object) map[selectorEntry][]*Object {
	uses := map[selectorEntry]int{}
	for _, s := range services {
		for label, value := range s.Selector {
			uses[selectorEntry{s.Account, s.Namespace, label, value}]++
		}
	}
	index := map[selectorEntry][]*Object{}
	for _, s := range services {
		if entry, ok := rarestEntry(s, uses); ok {
			index[entry] = append(index[entry], s)
		}
	}
	return index
}

// rarestEntry returns the entry of a Service's selector that the fewest Services have, the first of
// several.
func rarestEntry(s *Object, uses map[selectorEntry]int) (rarest selectorEntry, ok bool) {
	for label, value := range s.Selector {
		entry := selectorEntry{s.Account, s.Namespace, label, value}
		if !ok || uses[entry] < uses[rarest] || uses[entry] == uses[rarest] && label < rarest.label {
			rarest, ok = entry, true
		}
	}
	return rarest, ok
}

// servicesOf returns the Services that send traffic to a workload, sorted. As in Clouddriver,
// selectors match ReplicaSets only, and a StatefulSet belongs to the Service that it names.
func (x serviceIndex) servicesOf(o *Object) []*Object {
	var services []*Object
	switch o.Kind {
	case replicaSet:
		services = x.selecting(o)
	case statefulSet:
		for _, name := range o.Attributes.Services {
			if s := x.byName[serviceKey{o.Account, o.Namespace, name}]; s != nil {
				services = append(services, s)
			}
		}
	}
	slices.SortFunc(services, compareObjects)
	return services
}

// selecting returns the Services whose selectors match a workload, at most maxServices.
func (x serviceIndex) selecting(o *Object) []*Object {
	var services []*Object
	labels := slices.Sorted(maps.Keys(o.TemplateLabels)) // so that the limit leaves out the same each time
	for _, index := range x.byEntry {
		for _, label := range labels {
			for _, s := range index[selectorEntry{o.Account, o.Namespace, label, o.TemplateLabels[label]}] {
				if len(services) == maxServices {
					return services
				}
				if selects(s.Selector, o.TemplateLabels) {
					services = append(services, s)
				}
			}
		}
	}
	return services
}

// selects reports whether labels have every entry of a selector.
func selects(selector, labels map[string]string) bool {
	for label, want := range selector {
		if value, ok := labels[label]; !ok || value != want {
			return false
		}
	}
	return true
}
