package clouddriver

import (
	"context"
	"net/http"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/etag"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/manifest"
	"github.com/vedette-io/vedette/server/store"
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

// listCredentials mirrors CredentialsController.list. The list is not filtered by permissions,
// because Gate and Fiat filter it.
func (a *api) listCredentials(w http.ResponseWriter, r *http.Request, _ pathParams) error {
	list, err := a.credentials.list(r.Context(), singleParam(r.URL.Query(), "expand") == "true")
	if err != nil {
		return err
	}
	etag.Write(w, r, list.body, list.tag)
	return nil
}

// getCredentials mirrors CredentialsController.getAccount.
func (a *api) getCredentials(w http.ResponseWriter, r *http.Request, p pathParams) error {
	name := vedette.AccountName(p["account"])
	views, err := a.readCredentials(r.Context(), []vedette.AccountName{name})
	if err != nil {
		return err
	}
	if len(views) == 0 {
		return a.asAccountNotFound(store.ErrNoAccount, name)
	}
	return writeJSON(w, r, views[0])
}

// getAuthorizedCredentials mirrors CredentialsController.getAuthorizedAccount. Orca uses it to
// check whether a user may use an account's credentials.
func (a *api) getAuthorizedCredentials(w http.ResponseWriter, r *http.Request, p pathParams) error {
	if err := a.Authorizer.CheckAccount(r.Context(), authorize.CallerOf(r), vedette.AccountName(p["account"]), authorize.Write); err != nil {
		return a.asAccountNotFound(err, vedette.AccountName(p["account"]))
	}
	return a.getCredentials(w, r, p)
}

func (a *api) account(ctx context.Context, name vedette.AccountName) (store.AccountRow, error) {
	row, err := a.Store.Account(ctx, name)
	return row, a.asAccountNotFound(err, name)
}

// asAccountNotFound replaces the error of an unknown account by Clouddriver's.
func (a *api) asAccountNotFound(err error, name vedette.AccountName) error {
	if vedette.KindOf(err) == vedette.NotFound {
		return vedette.Errorf(vedette.NotFound, "Account does not exist (name: %s)", name)
	}
	return err
}

func (a *api) newCredentialView(row store.AccountRow) credentialView {
	p := row.Properties
	v := credentialView{Name: row.Name, Environment: orDefault(p.Environment, string(row.Name)),
		AccountType:   orDefault(p.AccountType, string(row.Name)),
		CloudProvider: "kubernetes", Type: "kubernetes", RequiredGroupMembership: []string{}, Permissions: newPermissionView(p.Permissions)}
	rules := a.Live.CredentialRules()
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

func (a *api) newExpandedView(row store.AccountRow, namespaces []string) expandedView {
	return expandedView{credentialView: a.newCredentialView(row), CacheThreads: 1, Enabled: true,
		Namespaces: visibleNamespaces(row, namespaces), DockerRegistries: []string{},
		SpinnakerKindMap: spinnakerKindMap(row.Properties.CustomResources)}
}

// visibleNamespaces returns the namespaces that the account is restricted to, or else all
// namespaces of the cluster: those that are stored, or if the account does not cache Namespaces,
// those that its agent found when it registered. Omitted namespaces are left out.
func visibleNamespaces(row store.AccountRow, stored []string) []string {
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
		m[kindName(vedette.ParseKind(c.KubernetesKind))] = orDefault(c.SpinnakerKind, manifest.Unclassified)
	}
	return m
}

func orDefault(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}

// nonNil returns l, or an empty list if l is nil, so that JSON shows [].
func nonNil(l []string) []string {
	if l == nil {
		return []string{}
	}
	return l
}
