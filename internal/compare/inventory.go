package compare

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Scope restricts a comparison. Patterns are names in which * stands for any text; no pattern means
// all.
type Scope struct {
	Accounts     []string
	Applications []string
}

// Inventory is what two servers know together: what there is to ask about.
type Inventory struct {
	Accounts []string // of Kubernetes, that both know
	// Others are the accounts that only one of them knows, or that are not asked about.
	Others []string

	mu           sync.Mutex
	applications map[string]*application
	objects      map[object]bool
}

// application is what the servers show of one application.
type application struct{ clusters map[clusterRef]bool }

type clusterRef struct{ account, name string }

// object is an object as a view shows it.
type object struct {
	view         string // serverGroup, manager, loadBalancer, securityGroup, instance or raw
	app, cluster string
	account      string
	location     string
	name         string // "replicaSet web-v001"
}

// Discover finds out what both servers know, from their answers.
func Discover(ctx context.Context, a, b Responder, scope Scope, parallel int) (*Inventory, error) {
	inv := &Inventory{applications: map[string]*application{}, objects: map[object]bool{}}
	if err := inv.discoverAccounts(ctx, a, b, scope); err != nil {
		return nil, err
	}
	responders := []Responder{a, b}
	if err := inv.discoverApplications(ctx, responders, scope); err != nil {
		return nil, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for _, app := range slices.Sorted(maps.Keys(inv.applications)) {
		for _, responder := range responders {
			group.Go(func() error { return inv.discoverApplication(ctx, responder, app) })
		}
	}
	for _, responder := range responders {
		group.Go(func() error { return inv.discoverSecurityGroups(ctx, responder) })
	}
	return inv, group.Wait()
}

// ask decodes an answer if its status is 200. Other statuses are not an error here: they are found
// when the answers are compared.
func ask(ctx context.Context, responder Responder, path string, into any) error {
	answer, err := responder.Answer(ctx, path)
	if err != nil || answer.Status != http.StatusOK {
		return err
	}
	_ = json.Unmarshal(answer.Body, into) // what does not fit is found when the answers are compared
	return nil
}

// discoverAccounts fills in the accounts. Servers that do not answer, or that are not Clouddriver,
// fail here.
func (inv *Inventory) discoverAccounts(ctx context.Context, a, b Responder, scope Scope) error {
	var known [2]map[string]bool
	all := map[string]bool{}
	for i, responder := range []Responder{a, b} {
		answer, err := responder.Answer(ctx, "/credentials")
		if err != nil {
			return err
		}
		var list []struct{ Name, CloudProvider, Type string }
		err = json.Unmarshal(answer.Body, &list)
		if answer.Status != http.StatusOK || err != nil {
			return fmt.Errorf("%s answered GET /credentials with status %d, want a list of accounts: does Clouddriver's API listen there?",
				[]string{"clouddriver", "vedette"}[i], answer.Status)
		}
		known[i] = map[string]bool{}
		for _, account := range list {
			all[account.Name] = true
			known[i][account.Name] = cmp.Or(account.CloudProvider, account.Type) == "kubernetes"
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if known[0][name] && known[1][name] && matchesAny(scope.Accounts, name) {
			inv.Accounts = append(inv.Accounts, name)
		} else {
			inv.Others = append(inv.Others, name)
		}
	}
	if len(inv.Accounts) == 0 {
		return fmt.Errorf("no Kubernetes account to compare: clouddriver has %s; vedette has %s", namesOf(known[0]), namesOf(known[1]))
	}
	return nil
}

func namesOf(accounts map[string]bool) string {
	names := slices.Sorted(maps.Keys(accounts))
	if len(names) == 0 {
		return "none"
	}
	if len(names) > 10 {
		names = append(names[:10], "…")
	}
	return shorten(strings.Join(names, ", "))
}

func matchesAny(patterns []string, name string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool { return Matches(p, name) })
}

// discoverApplications finds the applications that have clusters in the accounts.
func (inv *Inventory) discoverApplications(ctx context.Context, responders []Responder, scope Scope) error {
	for _, responder := range responders {
		var list []struct {
			Name         string
			ClusterNames map[string][]string
		}
		if err := ask(ctx, responder, "/applications", &list); err != nil {
			return err
		}
		for _, app := range list {
			for account, clusters := range app.ClusterNames {
				if !slices.Contains(inv.Accounts, account) || !matchesAny(scope.Applications, app.Name) {
					continue
				}
				for _, cluster := range clusters {
					inv.addCluster(app.Name, clusterRef{account, cluster})
				}
			}
		}
	}
	return nil
}

func (inv *Inventory) addCluster(app string, c clusterRef) {
	if inv.applications[app] == nil {
		inv.applications[app] = &application{clusters: map[clusterRef]bool{}}
	}
	inv.applications[app].clusters[c] = true
}

// item is an entry of an application's views.
type item struct {
	Account, Region, Namespace, Name, Cluster string

	Moniker   struct{ Cluster string }
	Instances []struct{ Name string }

	// Of load balancers.
	ServerGroups []struct{ Instances []struct{ ID, Name string } }
}

func (inv *Inventory) discoverApplication(ctx context.Context, responder Responder, app string) error {
	base := "/applications/" + url.PathEscape(app)
	for path, view := range map[string]string{"/serverGroups": "serverGroup", "/serverGroupManagers": "manager",
		"/loadBalancers": "loadBalancer", "/rawResources": "raw"} {
		var items []item
		if err := ask(ctx, responder, base+path, &items); err != nil {
			return err
		}
		inv.mu.Lock()
		for _, i := range items {
			inv.addItem(view, app, i)
		}
		inv.mu.Unlock()
	}
	return nil
}

func (inv *Inventory) addItem(view, app string, i item) {
	if !slices.Contains(inv.Accounts, i.Account) || i.Name == "" {
		return
	}
	o := object{view: view, app: app, cluster: cmp.Or(i.Cluster, i.Moniker.Cluster), account: i.Account,
		location: cmp.Or(i.Region, i.Namespace), name: i.Name}
	inv.objects[o] = true
	for _, instance := range i.Instances {
		inv.objects[object{view: "instance", account: i.Account, location: o.location, name: instance.Name}] = true
	}
}

// discoverSecurityGroups reads a map of account, provider and namespace to a list.
func (inv *Inventory) discoverSecurityGroups(ctx context.Context, responder Responder) error {
	var groups map[string]map[string]map[string][]struct{ Name string }
	if err := ask(ctx, responder, "/securityGroups", &groups); err != nil {
		return err
	}
	inv.mu.Lock()
	defer inv.mu.Unlock()
	for account, providers := range groups {
		for location, list := range providers["kubernetes"] {
			for _, g := range list {
				inv.addItem("securityGroup", "", item{Account: account, Region: location, Name: g.Name})
			}
		}
	}
	return nil
}
