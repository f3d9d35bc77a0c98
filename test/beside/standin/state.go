package standin

import (
	"slices"
	"sync"
)

// state is what the stand-in knows.
type state struct {
	mu       sync.Mutex
	accounts []Account
	objects  []Object
	plugin   *Plugin // nil without the plugin
}

// snapshot is the state at one time. Its objects are those of its accounts.
type snapshot struct {
	accounts []Account
	objects  []Object
	plugin   *Plugin
}

func (s *state) snapshot() snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return snapshot{s.accounts, s.objects, s.plugin}.only(func(Account) bool { return true })
}

// only returns the part of a snapshot that some accounts have.
func (s snapshot) only(keep func(Account) bool) snapshot {
	names := map[string]bool{}
	part := snapshot{plugin: s.plugin}
	for _, a := range s.accounts {
		if keep(a) {
			part.accounts = append(part.accounts, a)
			names[a.Name] = true
		}
	}
	for _, o := range s.objects {
		if names[o.Account] {
			part.objects = append(part.objects, o)
		}
	}
	return part
}

// of returns the part of a snapshot that one account has.
func (s snapshot) of(account string) snapshot {
	return s.only(func(a Account) bool { return a.Name == account })
}

// selectKinds returns the objects of an application that have one of the kinds. An empty application means all.
func (s snapshot) selectKinds(application string, kinds ...string) (selected []Object) {
	for _, o := range s.objects {
		if slices.Contains(kinds, o.kind()) && o.Application() != "" && (application == "" || o.Application() == application) {
			selected = append(selected, o)
		}
	}
	return selected
}

// find returns the object of an account with a namespace and a full name.
func (s snapshot) find(account, namespace, fullName string) (Object, bool) {
	index := slices.IndexFunc(s.objects, func(o Object) bool {
		return o.Account == account && o.Metadata.Namespace == namespace && o.FullName() == fullName
	})
	if index < 0 {
		return Object{}, false
	}
	return s.objects[index], true
}

// applications returns the names of all applications, sorted.
func (s snapshot) applications() []string {
	var names []string
	for _, o := range s.selectKinds("", "replicaSet") {
		names = append(names, o.Application())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// clusters returns the names of an application's clusters by account.
func (s snapshot) clusters(application string) map[string][]string {
	byAccount := map[string][]string{}
	for _, o := range s.selectKinds(application, "replicaSet") {
		if !slices.Contains(byAccount[o.Account], o.Cluster()) {
			byAccount[o.Account] = append(byAccount[o.Account], o.Cluster())
		}
	}
	return byAccount
}
