package beside

import (
	"net/url"
	"strings"
)

// request is one request of a reader.
type request struct {
	path  string
	check checkFunc
	// account is the one account that the request is about; "" if it is about several.
	account string
	// isOwn is set if the server has what is asked for, whoever has the account now.
	isOwn bool
	// keepsLast is set if the server answers with the last complete answer of an upstream Clouddriver that does not
	// answer.
	keepsLast bool
}

// isTask reports whether the request is for a task, which is passed on without being merged.
func (q request) isTask() bool { return strings.HasPrefix(q.path, "/task/") }

// requestFunc returns the next request of a reader; it gets the number of the last ones. The path is empty if there
// is nothing to ask now.
type requestFunc func(n int) request

// subjects are what readers ask for.
type subjects struct {
	accounts     []string
	applications map[string]*inventory
	tasks        func(n int) (id string, isOwn bool) // that have succeeded; id is "" if there is none yet
	// hasNewcomer reports whether the application newcomer must be there now; nil if the upstream Clouddriver knows it.
	hasNewcomer func() bool
}

// orcaRequests are the requests of Orca and Deck by the names of their readers.
func (s subjects) orcaRequests() map[string]requestFunc {
	readers := map[string]requestFunc{
		"credentials":          s.kept("/credentials", checkAccounts(s.accounts)),
		"credentials expanded": s.kept("/credentials?expand=true", checkAccounts(s.accounts)),
		"applications":         s.kept("/applications?restricted=false", checkApplications(s.applications, true)),
		"security groups": func(int) request {
			return request{path: "/securityGroups", check: checkSecurityGroups(s.securityGroups())}
		},
		"server groups of two":    s.severalServerGroups,
		"manifests":               s.manifest,
		"clusters of one account": s.accountClusters,
		"tasks":                   s.task,
	}
	for name, r := range map[string]struct {
		suffix string
		check  func(*inventory) checkFunc
	}{
		"application":            {"", func(i *inventory) checkFunc { return checkApplication(i.clusters) }},
		"clusters":               {"/clusters", func(i *inventory) checkFunc { return checkClusters(i.clusters) }},
		"server groups":          {"/serverGroups?expand=false", func(i *inventory) checkFunc { return checkObjects(i.serverGroups, false) }},
		"server groups expanded": {"/serverGroups?expand=true", func(i *inventory) checkFunc { return checkObjects(i.serverGroups, false) }},
		"server group managers":  {"/serverGroupManagers", func(i *inventory) checkFunc { return checkObjects(i.managers, false) }},
		"load balancers":         {"/loadBalancers", func(i *inventory) checkFunc { return checkObjects(i.loadBalancers, false) }},
		"raw resources": {"/rawResources", func(i *inventory) checkFunc {
			return checkObjects(together(i.serverGroups, i.managers, i.loadBalancers), true) // and Pods
		}},
	} {
		readers[name] = func(n int) request {
			application := applicationName(n)
			return request{path: "/applications/" + application + r.suffix, check: r.check(s.applications[application])}
		}
	}
	if s.hasNewcomer != nil {
		readers["application of agents"] = s.newcomer
	}
	return readers
}

// fiatRequests are the requests of Fiat by the names of their readers.
func (s subjects) fiatRequests() map[string]requestFunc {
	return map[string]requestFunc{
		"Fiat: credentials":  s.kept("/credentials", checkAccounts(s.accounts)),
		"Fiat: applications": s.kept("/applications?restricted=false&expand=false", checkApplications(s.applications, false)),
	}
}

// kept always asks for the same, for which the server has a last complete answer.
func (s subjects) kept(path string, check checkFunc) requestFunc {
	return func(int) request { return request{path: path, check: check, keepsLast: true} }
}

func (s subjects) securityGroups() names {
	want := names{}
	for _, account := range []string{east, west} {
		want.add(account, "networkPolicy all")
	}
	return want
}

func (s subjects) severalServerGroups(n int) request {
	first, second := s.applications[applicationName(n)], s.applications[applicationName(n+1)]
	if n%2 == 0 {
		return request{path: "/serverGroups?applications=" + applicationName(n) + "," + applicationName(n+1),
			check: checkObjects(together(first.serverGroups, second.serverGroups), false)}
	}
	var ids []string
	for account, list := range first.serverGroups {
		for _, name := range list {
			ids = append(ids, account+":"+namespace+":"+name)
		}
	}
	return request{path: "/serverGroups?ids=" + url.QueryEscape(strings.Join(ids, ",")), check: checkObjects(first.serverGroups, false)}
}

func accountOf(n int) string { return []string{east, west}[n%2] }

// manifest asks as Orca does, without the events, for which an agent has to be asked.
func (s subjects) manifest(n int) request {
	account, name := accountOf(n), "deployment "+applicationName(n/2)
	return request{path: "/manifests/" + account + "/" + namespace + "/" + url.PathEscape(name) + "?includeEvents=false", account: account,
		check: checkManifest(account, name)}
}

func (s subjects) accountClusters(n int) request {
	account, application := accountOf(n), applicationName(n/2)
	return request{path: "/applications/" + application + "/clusters/" + account, account: account,
		check: checkNamed(account, s.applications[application].clusters[account])}
}

func (s subjects) task(n int) request {
	id, isOwn := s.tasks(n)
	if id == "" {
		return request{}
	}
	return request{path: "/task/" + id, isOwn: isOwn, check: checkTask(id)}
}

// newcomer asks for the application that only agents know.
func (s subjects) newcomer(n int) request {
	if !s.hasNewcomer() {
		return request{}
	}
	want := s.applications[newcomer]
	return []request{
		{path: "/applications/" + newcomer, account: west, check: checkApplication(want.clusters)},
		{path: "/applications/" + newcomer + "/serverGroups", account: west, check: checkObjects(want.serverGroups, false)},
		{path: "/applications/" + newcomer + "/clusters", account: west, check: checkClusters(want.clusters)},
	}[n%3]
}
