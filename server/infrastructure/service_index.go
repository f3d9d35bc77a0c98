package infrastructure

import (
	"slices"

	"github.com/vedette-io/vedette"
)

// serviceIndex finds the Services of a workload. A namespace can have thousands of both, so it
// does not compare each with each: a Service is found by one entry of its selector.
type serviceIndex struct {
	byName  map[serviceKey]*Object
	byEntry map[selectorEntry][]*Object
}

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

// newServiceIndex indexes Services; other kinds and a second row of a Service are left out.
func newServiceIndex(objects []*Object) serviceIndex {
	x := serviceIndex{byName: map[serviceKey]*Object{}, byEntry: map[selectorEntry][]*Object{}}
	uses := map[selectorEntry]int{}
	for _, s := range objects {
		key := serviceKey{s.Account, s.Namespace, s.Name}
		if s.Kind != service || x.byName[key] != nil {
			continue
		}
		x.byName[key] = s
		for label, value := range s.Selector {
			uses[selectorEntry{s.Account, s.Namespace, label, value}]++
		}
	}
	for _, s := range x.byName {
		if entry, ok := rarestEntry(s, uses); ok {
			x.byEntry[entry] = append(x.byEntry[entry], s)
		}
	}
	return x
}

// rarestEntry returns the entry of a Service's selector that the fewest Services have.
func rarestEntry(s *Object, uses map[selectorEntry]int) (rarest selectorEntry, ok bool) {
	for label, value := range s.Selector {
		entry := selectorEntry{s.Account, s.Namespace, label, value}
		if !ok || uses[entry] < uses[rarest] {
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
		for label, value := range o.TemplateLabels {
			for _, s := range x.byEntry[selectorEntry{o.Account, o.Namespace, label, value}] {
				if selects(s.Selector, o.TemplateLabels) {
					services = append(services, s)
				}
			}
		}
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

// selects reports whether labels have every entry of a selector.
func selects(selector, labels map[string]string) bool {
	for label, want := range selector {
		if value, ok := labels[label]; !ok || value != want {
			return false
		}
	}
	return true
}
