package compare

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Paths returns what Gate, Orca, Deck and Fiat may ask about the inventory: at most limit paths of
// each form, spread evenly; 0 means all. It also returns how many paths it left out. Secrets are never
// asked for.
func (inv *Inventory) Paths(limit int) (paths []string, omitted int) {
	var c calls
	c.addGeneral(inv)
	for _, name := range slices.Sorted(maps.Keys(inv.applications)) {
		c.addApplication(inv, name)
	}
	for _, o := range slices.SortedFunc(maps.Keys(inv.objects), compareObjects) {
		c.addObject(o)
	}
	return c.sample(limit)
}

func compareObjects(a, b object) int {
	return cmp.Or(cmp.Compare(a.view, b.view), cmp.Compare(a.account, b.account), cmp.Compare(a.location, b.location),
		cmp.Compare(a.name, b.name), cmp.Compare(a.app, b.app), cmp.Compare(a.cluster, b.cluster))
}

// calls collects paths, in order and without duplicates.
type calls struct {
	paths []string
	seen  map[string]bool
}

// add adds a path of several parts, each of which is escaped, and its variants with queries.
func (c *calls) add(parts []string, queries ...string) {
	var b strings.Builder
	for _, part := range parts {
		b.WriteString("/" + url.PathEscape(part))
	}
	for _, query := range append([]string{""}, queries...) {
		c.addPath(b.String() + query)
	}
}

func (c *calls) addPath(path string) {
	if c.seen == nil {
		c.seen = map[string]bool{}
	}
	if !c.seen[path] {
		c.seen[path] = true
		c.paths = append(c.paths, path)
	}
}

// addGeneral adds what is not about one application.
func (c *calls) addGeneral(inv *Inventory) {
	c.add([]string{"credentials"}, "?expand=true")
	c.add([]string{"applications"}, "?expand=false", "?restricted=false", "?restricted=false&expand=false")
	c.add([]string{"securityGroups"})
	for _, path := range []string{"/kubernetes/loadBalancers", "/networks/kubernetes", "/subnets/kubernetes", "/features/stages",
		"/artifacts/credentials"} {
		c.addPath(path)
	}
	for _, account := range inv.Accounts {
		c.add([]string{"credentials", account})
		c.add([]string{"securityGroups", account})
		c.add([]string{"securityGroups", account, "kubernetes"})
		c.addSearch(account)
	}
}

// searchTypes are the types that Deck and Orca search for.
var searchTypes = []string{"applications", "clusters", "serverGroups", "serverGroupManagers", "instances", "loadBalancers",
	"securityGroups", "deployment", "replicaSet", "pod", "service"}

func (c *calls) addSearch(word string) {
	for _, t := range searchTypes {
		c.addPath("/search?pageSize=500&q=" + url.QueryEscape(word) + "&type=" + t)
	}
}

func (c *calls) addApplication(inv *Inventory, name string) {
	base := []string{"applications", name}
	c.add(base, "?expand=false")
	c.add(append(base, "clusters"))
	c.add(append(base, "serverGroups"), "?expand=true", "?cloudProvider=kubernetes")
	c.add(append(base, "serverGroupManagers"))
	c.add(append(base, "loadBalancers"))
	c.add(append(base, "rawResources"))
	c.addPath("/serverGroups?applications=" + url.QueryEscape(name))
	c.addSearch(strings.ToLower(name))
	for _, account := range inv.Accounts {
		c.add([]string{"applications", name, "clusters", account})
	}
	for _, cluster := range slices.SortedFunc(maps.Keys(inv.applications[name].clusters), func(a, b clusterRef) int {
		return cmp.Or(cmp.Compare(a.account, b.account), cmp.Compare(a.name, b.name))
	}) {
		base := []string{"applications", name, "clusters", cluster.account, cluster.name}
		c.add(base, "?expand=false")
		c.add(append(base, "kubernetes"), "?expand=false")
		c.add(append(base, "kubernetes", "serverGroups"))
	}
}

// targets are the server groups that Orca asks for by their place in a cluster.
var targets = []string{"current_asg_dynamic", "ancestor_asg_dynamic", "oldest_asg_dynamic"}

// criteria are the manifests that Orca asks for by their place in a cluster.
var criteria = []string{"oldest", "newest", "second_newest", "largest", "smallest"}

func (c *calls) addObject(o object) {
	kind, _, hasKind := strings.Cut(o.name, " ")
	if strings.EqualFold(kind, "secret") {
		return
	}
	place := []string{o.account, o.location, o.name}
	switch o.view {
	case "serverGroup":
		c.add(slices.Concat([]string{"serverGroups"}, place))
		c.add(slices.Concat([]string{"applications", o.app, "serverGroups"}, place), "?includeDetails=false")
		c.addClusterOf(o, kind)
		if strings.EqualFold(kind, "job") {
			c.add(slices.Concat([]string{"applications", o.app, "jobs"}, place))
		}
	case "manager":
		c.add(slices.Concat([]string{"serverGroups"}, place))
		c.addClusterOf(o, kind)
	case "loadBalancer":
		c.add(slices.Concat([]string{"kubernetes", "loadBalancers"}, place))
	case "securityGroup":
		c.add([]string{"securityGroups", o.account, "kubernetes", o.name})
		c.add([]string{"securityGroups", o.account, "kubernetes", o.location, o.name})
	case "instance":
		c.add(slices.Concat([]string{"instances"}, place))
	}
	if hasKind {
		c.add([]string{"manifests", o.account, cmp.Or(o.location, "_"), o.name}, "?includeEvents=false")
	}
}

// addClusterOf adds the calls about a server group or manager as a member of its cluster.
func (c *calls) addClusterOf(o object, kind string) {
	if o.cluster == "" {
		return
	}
	base := []string{"applications", o.app, "clusters", o.account, o.cluster, "kubernetes"}
	c.add(slices.Concat(base, []string{"serverGroups", o.name}), "?region="+url.QueryEscape(o.location))
	for _, target := range targets {
		c.add(slices.Concat(base, []string{o.location, "serverGroups", "target", target}))
	}
	manifests := []string{"manifests", o.account, o.location, kind, "cluster", o.app, o.cluster}
	c.add(manifests)
	for _, criterion := range criteria {
		c.add(slices.Concat(manifests, []string{"dynamic", criterion}))
	}
}

// sample returns at most limit paths of each form.
func (c *calls) sample(limit int) (paths []string, omitted int) {
	if limit <= 0 {
		return c.paths, 0
	}
	byForm := map[string][]string{}
	var forms []string
	for _, path := range c.paths {
		form := Form(path)
		if byForm[form] == nil {
			forms = append(forms, form)
		}
		byForm[form] = append(byForm[form], path)
	}
	for _, form := range forms {
		all := byForm[form]
		n := min(limit, len(all))
		for i := range n {
			paths = append(paths, all[i*len(all)/n])
		}
		omitted += len(all) - n
	}
	return paths, omitted
}
