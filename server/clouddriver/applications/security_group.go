package applications

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/cespare/xxhash/v2"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/etag"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/infrastructure"
	"github.com/vedette-io/vedette/server/manifest"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/rest"
	"github.com/vedette-io/vedette/server/store/read"
)

// securityGroupSummary is a NetworkPolicy in lists. Its moniker is always empty, because
// Clouddriver parses it from the full name, in which Frigga finds nothing.
type securityGroupSummary struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Moniker struct{} `json:"moniker"`
}

// groupsByNamespace are sorted by name. An empty map is not nil, so that JSON shows {}.
type groupsByNamespace map[string][]securityGroupSummary

// listSecurityGroups mirrors SecurityGroupController.list. Accounts that the caller may not read
// are left out.
func (a *api) listSecurityGroups(w http.ResponseWriter, r *http.Request, _ web.Params) error {
	return a.writeSecurityGroups(w, r, read.SearchQuery{}, func(rows []read.SearchRow) any {
		accounts := map[vedette.AccountName]map[string]groupsByNamespace{}
		for len(rows) > 0 {
			n := 1
			for n < len(rows) && rows[n].Account == rows[0].Account {
				n++
			}
			accounts[rows[0].Account] = map[string]groupsByNamespace{"kubernetes": groupByNamespace(rows[:n])}
			rows = rows[n:]
		}
		return accounts
	})
}

// listAccountSecurityGroups mirrors SecurityGroupController.listByAccount, and with a region
// listByAccountAndRegion.
func (a *api) listAccountSecurityGroups(w http.ResponseWriter, r *http.Request, p web.Params) error {
	hasRegion := r.URL.Query().Has("region")
	return a.writeAccountSecurityGroups(w, r, p, read.SearchQuery{}, func(rows []read.SearchRow) any {
		switch {
		case len(rows) == 0:
			return map[string]any{}
		case hasRegion:
			return map[string]any{"kubernetes": summariesOf(rows)}
		}
		return map[string]any{"kubernetes": groupByNamespace(rows)}
	})
}

// listProviderSecurityGroups mirrors SecurityGroupController.listByAccountAndCloudProvider, and
// with a region listByAccountAndCloudProviderAndRegion.
func (a *api) listProviderSecurityGroups(w http.ResponseWriter, r *http.Request, p web.Params) error {
	hasRegion := r.URL.Query().Has("region")
	return a.writeAccountSecurityGroups(w, r, p, read.SearchQuery{}, func(rows []read.SearchRow) any {
		if hasRegion {
			return summariesOf(rows)
		}
		return groupByNamespace(rows)
	})
}

// listNamedSecurityGroups mirrors SecurityGroupController.listByAccountAndCloudProviderAndName.
func (a *api) listNamedSecurityGroups(w http.ResponseWriter, r *http.Request, p web.Params) error {
	// Like Clouddriver, it ignores which kind the name has.
	_, name, err := manifest.SplitName(p["name"])
	if err != nil {
		p["provider"] = "" // nothing has such a name
	}
	return a.writeAccountSecurityGroups(w, r, p, read.SearchQuery{Name: name}, func(rows []read.SearchRow) any {
		return groupByNamespace(rows)
	})
}

// writeAccountSecurityGroups answers for one account, which the caller must be allowed to read. The
// region is the namespace. Other providers than Kubernetes have no security groups.
func (a *api) writeAccountSecurityGroups(w http.ResponseWriter, r *http.Request, p web.Params, q read.SearchQuery,
	shape func([]read.SearchRow) any) error {
	account := vedette.AccountName(p["account"])
	if err := a.Authorizer.CheckAccount(r.Context(), authorize.CallerOf(r), account, authorize.Read); err != nil {
		return err
	}
	query := r.URL.Query()
	provider, hasProvider := p["provider"]
	isEmptyRegion := query.Has("region") && web.SingleParam(query, "region") == "" // no NetworkPolicy is without a namespace
	if hasProvider && provider != "kubernetes" || isEmptyRegion {
		return rest.WriteJSON(w, r, shape(nil))
	}
	q.CanRead, q.Namespace = onlyAccount(account), web.SingleParam(query, "region")
	return a.writeSecurityGroups(w, r, q, shape)
}

func (a *api) writeSecurityGroups(w http.ResponseWriter, r *http.Request, q read.SearchQuery, shape func([]read.SearchRow) any) error {
	q.KindName = onlyKinds(infrastructure.SecurityGroupKinds...)
	rows, release, err := a.findObjects(r, q)
	if err != nil {
		return err
	}
	defer release()
	return rest.WriteJSON(w, r, shape(rows))
}

func groupByNamespace(rows []read.SearchRow) groupsByNamespace {
	groups := groupsByNamespace{}
	for _, row := range rows {
		groups[row.Namespace] = append(groups[row.Namespace], newSecurityGroupSummary(row.Key))
	}
	return groups
}

func summariesOf(rows []read.SearchRow) []securityGroupSummary {
	summaries := []securityGroupSummary{}
	for _, row := range rows {
		summaries = append(summaries, newSecurityGroupSummary(row.Key))
	}
	return summaries
}

func newSecurityGroupSummary(key vedette.Key) securityGroupSummary {
	name := manifest.KindName(key.Kind) + " " + key.Name
	return securityGroupSummary{ID: name, Name: name}
}

// getSecurityGroup mirrors SecurityGroupController.get. The rules come from the stored manifest,
// so that the answer is there even if the cluster is not.
func (a *api) getSecurityGroup(w http.ResponseWriter, r *http.Request, p web.Params) error {
	account := vedette.AccountName(p["account"])
	if err := a.Authorizer.CheckAccount(r.Context(), authorize.CallerOf(r), account, authorize.Read); err != nil {
		return err
	}
	o, err := a.findSecurityGroup(r, account, p)
	if err != nil {
		return err
	}
	row, release, err := readlimit.Read(r.Context(), a.ReadLimiter, readlimit.CallerOf(r), func() (read.Row, int64, error) {
		return a.readStored(r, account, o.Key)
	})
	if err != nil {
		return err
	}
	defer release()
	var e encoder
	if err := e.securityGroup(o, row.Body); err != nil {
		return err
	}
	etag.Write(w, r, append(e.B, '\n'), xxhash.Sum64(e.B))
	return nil
}

// readStored returns an object with its manifest, and the memory that it takes.
func (a *api) readStored(r *http.Request, account vedette.AccountName, key vedette.Key) (read.Row, int64, error) {
	row, err := a.Store.Object(r.Context(), account, key)
	if err != nil {
		return row, 0, err
	}
	size, err := web.ObjectBytes(&row)
	return row, size, err
}

// findSecurityGroup returns the NetworkPolicy in a path. The error is vedette.NotFound if views show
// none.
func (a *api) findSecurityGroup(r *http.Request, account vedette.AccountName, p web.Params) (*infrastructure.Object, error) {
	missing := vedette.Errorf(vedette.NotFound, "Security group '%s' does not exist", p["name"])
	_, name, err := manifest.SplitName(p["name"])
	if err != nil || p["provider"] != "kubernetes" {
		return nil, missing
	}
	o, err := a.Views.Object(r.Context(), account, vedette.Key{Kind: infrastructure.SecurityGroupKinds[0], Namespace: p["region"], Name: name})
	if err == nil && o == nil {
		err = missing
	}
	return o, err
}

// securityGroup appends a NetworkPolicy like Clouddriver's KubernetesSecurityGroup.
func (e *encoder) securityGroup(o *infrastructure.Object, body []byte) error {
	inbound, outbound, err := networkPolicyRules(body)
	if err != nil {
		return err
	}
	rules, err := json.Marshal(map[string]any{"inboundRules": inbound, "outboundRules": outbound, "summary": newSecurityGroupSummary(o.Key)})
	if err != nil {
		return fmt.Errorf("encode the rules of %s: %w", o.Key, err)
	}
	e.Object(func() {
		e.Text("class", securityGroupClass)
		e.Text("accountName", string(o.Account))
		web.WriteMonikerText(&e.Writer, "application", &o.Moniker, vedette.AppPart)
		e.Text("id", infrastructure.FullName(o))
		e.Text("type", "kubernetes")
		e.resource(o)
		e.Separate()
		e.B = append(e.B, rules[1:len(rules)-1]...)
	})
	return nil
}
