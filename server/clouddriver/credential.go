package clouddriver

import (
	"context"
	"net/http"
	"slices"

	"github.com/vedette-io/vedette"
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
	rows, err := a.Store.Accounts(r.Context())
	if err != nil {
		return err
	}
	if r.URL.Query().Get("expand") != "true" {
		list := []credentialView{}
		for _, row := range rows {
			list = append(list, a.newCredentialView(row))
		}
		return writeJSON(w, r, list)
	}
	feeds, err := a.Store.Feeds(r.Context())
	if err != nil {
		return err
	}
	kinds := map[vedette.AccountName][]vedette.Kind{}
	for _, f := range feeds {
		kinds[f.Account] = append(kinds[f.Account], f.Feed.Kind)
	}
	list := []expandedView{}
	for _, row := range rows {
		list = append(list, a.newExpandedView(row, kinds[row.Name]))
	}
	return writeJSON(w, r, list)
}

// getCredentials mirrors CredentialsController.getAccount.
func (a *api) getCredentials(w http.ResponseWriter, r *http.Request, p pathParams) error {
	name := vedette.AccountName(p["account"])
	row, err := a.account(r.Context(), name)
	if err != nil {
		return err
	}
	feeds, err := a.Store.Feeds(r.Context(), name)
	if err != nil {
		return err
	}
	var kinds []vedette.Kind
	for _, f := range feeds {
		kinds = append(kinds, f.Feed.Kind)
	}
	return writeJSON(w, r, a.newExpandedView(row, kinds))
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
	v.PrimaryAccount = slices.Contains(a.PrimaryAccountTypes, v.AccountType)
	v.ChallengeDestructiveActions = slices.Contains(a.ChallengeEnvironments, v.Environment)
	return v
}

func newPermissionView(p *vedette.Permissions) *permissionView {
	if p == nil {
		return nil
	}
	return &permissionView{Read: nonNil(p.Read), Write: nonNil(p.Write), Execute: p.Execute}
}

func (a *api) newExpandedView(row store.AccountRow, reported []vedette.Kind) expandedView {
	return expandedView{credentialView: a.newCredentialView(row), CacheThreads: 1, Enabled: true, Namespaces: visibleNamespaces(row),
		DockerRegistries: []string{}, SpinnakerKindMap: spinnakerKindMap(row.Properties.CustomResources, reported)}
}

// visibleNamespaces returns the namespaces that the account is restricted to, or else all
// namespaces of the cluster. Omitted namespaces are left out.
func visibleNamespaces(row store.AccountRow) []string {
	if configured := row.Properties.Namespaces; len(configured) > 0 {
		return configured
	}
	return slices.DeleteFunc(nonNil(slices.Clone(row.Namespaces)), func(n string) bool {
		return slices.Contains(row.Properties.OmitNamespaces, n)
	})
}

// spinnakerKindMap maps kinds to Spinnaker's kinds: Clouddriver's own kinds, other kinds that
// the account reports, and custom kinds as configured.
func spinnakerKindMap(custom []vedette.CustomResource, reported []vedette.Kind) map[string]string {
	m := manifest.SpinnakerKinds()
	for _, kind := range reported {
		if name := kindName(kind); m[name] == "" {
			m[name] = manifest.Unclassified
		}
	}
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
