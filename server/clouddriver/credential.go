package clouddriver

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/etag"
	"github.com/vedette-io/vedette/server/accountlist"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/manifest"
	"github.com/vedette-io/vedette/server/rest"
	"github.com/vedette-io/vedette/server/store/registry"
)

// credentialView is an account in the list without expand=true, which Fiat reads.
type credentialView struct {
	Name                        vedette.AccountName `json:"name"`
	Environment                 string              `json:"environment"`
	AccountType                 string              `json:"accountType"`
	CloudProvider               string              `json:"cloudProvider"`
	Type                        string              `json:"type"`
	RequiredGroupMembership     []string            `json:"requiredGroupMembership"`
	Permissions                 *permissionView     `json:"permissions,omitempty"` // nil: open to everyone
	PrimaryAccount              bool                `json:"primaryAccount"`
	ChallengeDestructiveActions bool                `json:"challengeDestructiveActions"`
}

type permissionView struct {
	Read    []string `json:"READ"`
	Write   []string `json:"WRITE"`
	Execute []string `json:"EXECUTE,omitempty"`
}

// expandedView is an account as Gate and Deck read it.
type expandedView struct {
	credentialView
	CacheThreads     int               `json:"cacheThreads"`
	Enabled          bool              `json:"enabled"`
	Namespaces       []string          `json:"namespaces"`
	DockerRegistries []string          `json:"dockerRegistries"`
	SpinnakerKindMap map[string]string `json:"spinnakerKindMap"`
}

// credentialRoutes are those of CredentialsController that read accounts.
func (a *api) credentialRoutes() []web.Route {
	return []web.Route{
		web.Handle("credentials", a.listCredentials),
		web.Handle("credentials/{account}", a.getCredentials),
		web.Handle("credentials/{account}/authorized", a.getAuthorizedCredentials),
	}
}

// listCredentials mirrors CredentialsController.list. The list is not filtered by permissions,
// because Gate and Fiat filter it.
func (a *api) listCredentials(w http.ResponseWriter, r *http.Request, _ web.Params) error {
	list, err := a.listAll(r.Context(), web.SingleParam(r.URL.Query(), "expand") == "true")
	if err != nil {
		return err
	}
	etag.Write(w, r, list.body, list.tag)
	return nil
}

// getCredentials mirrors CredentialsController.getAccount.
func (a *api) getCredentials(w http.ResponseWriter, r *http.Request, p web.Params) error {
	name := vedette.AccountName(p["account"])
	if err := a.Store.CheckLease(r.Context()); err != nil {
		return err
	}
	accounts, err := a.Accounts.Current(r.Context())
	if err != nil {
		return err
	}
	row := accounts.Row(name)
	if row == nil {
		return web.AccountNotFound(registry.ErrNoAccount, name)
	}
	namespaces, err := a.Store.Namespaces(r.Context(), name)
	if err != nil {
		return err
	}
	return rest.WriteJSON(w, r, a.newExpandedView(row, namespaces[name]))
}

// getAuthorizedCredentials mirrors CredentialsController.getAuthorizedAccount. Orca uses it to
// check whether a user may use an account's credentials.
func (a *api) getAuthorizedCredentials(w http.ResponseWriter, r *http.Request, p web.Params) error {
	if err := a.Authorizer.CheckAccount(r.Context(), authorize.CallerOf(r), vedette.AccountName(p["account"]), authorize.Write); err != nil {
		return web.AccountNotFound(err, vedette.AccountName(p["account"]))
	}
	return a.getCredentials(w, r, p)
}

func (a *api) newCredentialView(row *accountlist.Row) credentialView {
	p := row.Properties
	v := credentialView{Name: row.Name, Environment: cmp.Or(p.Environment, string(row.Name)),
		AccountType:   cmp.Or(p.AccountType, string(row.Name)),
		CloudProvider: "kubernetes", Type: "kubernetes", RequiredGroupMembership: []string{}, Permissions: newPermissionView(p.Permissions)}
	rules := a.Reloadable.CredentialRules()
	v.PrimaryAccount = slices.Contains(rules.PrimaryAccountTypes, v.AccountType)
	v.ChallengeDestructiveActions = slices.Contains(rules.ChallengeEnvironments, v.Environment)
	return v
}

func newPermissionView(p *vedette.Permissions) *permissionView {
	if p == nil {
		return nil
	}
	return &permissionView{Read: nonNil(p.Read), Write: nonNil(p.Write), Execute: p.Execute}
}

func (a *api) newExpandedView(row *accountlist.Row, namespaces []string) expandedView {
	return expandedView{credentialView: a.newCredentialView(row), CacheThreads: 1, Enabled: true,
		Namespaces: visibleNamespaces(row, namespaces), DockerRegistries: []string{},
		SpinnakerKindMap: spinnakerKindMap(row.Properties.CustomResources)}
}

// visibleNamespaces returns the namespaces that the account is restricted to, or else all
// namespaces of the cluster: those that are stored, or if the account does not cache Namespaces,
// those that its agent found when it registered. Omitted namespaces are left out.
func visibleNamespaces(row *accountlist.Row, stored []string) []string {
	if configured := row.Properties.Namespaces; len(configured) > 0 {
		return configured
	}
	all := stored
	if len(all) == 0 {
		all = row.Namespaces
	}
	return slices.DeleteFunc(nonNil(slices.Clone(all)), func(n string) bool {
		return slices.Contains(row.Properties.OmitNamespaces, n)
	})
}

// spinnakerKindMap maps kinds to Spinnaker's kinds: Clouddriver's own kinds, and custom kinds as
// configured. Other kinds that the account has are not in it, as in Clouddriver.
func spinnakerKindMap(custom []vedette.CustomResource) map[string]string {
	m := manifest.SpinnakerKinds()
	for _, c := range custom {
		m[manifest.KindName(vedette.ParseKind(c.KubernetesKind))] = cmp.Or(c.SpinnakerKind, manifest.Unclassified)
	}
	return m
}

// nonNil returns l, or an empty list if l is nil, so that JSON shows [].
func nonNil(l []string) []string {
	if l == nil {
		return []string{}
	}
	return l
}
