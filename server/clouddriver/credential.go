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

// credentialView is an account in the unexpanded list, which Fiat reads.
type credentialView struct {
	Name                        vedette.AccountName `json:"name"`
	Environment                 string              `json:"environment"`
	AccountType                 string              `json:"accountType"`
	CloudProvider               string              `json:"cloudProvider"`
	Type                        string              `json:"type"`
	RequiredGroupMembership     []string            `json:"requiredGroupMembership"`
	Permissions                 *permissionView     `json:"permissions,omitempty"` // none: open to everyone
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

// listCredentials mirrors CredentialsController.list. It is not filtered by
// permissions: Gate and Fiat do that.
func (a *api) listCredentials(w http.ResponseWriter, r *http.Request, _ parts) error {
	rows, err := a.Store.Accounts(r.Context())
	if err != nil {
		return err
	}
	if r.URL.Query().Get("expand") != "true" {
		list := []credentialView{}
		for _, row := range rows {
			list = append(list, a.credential(row))
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
		list = append(list, a.expand(row, kinds[row.Name]))
	}
	return writeJSON(w, r, list)
}

// getCredentials mirrors CredentialsController.getAccount.
func (a *api) getCredentials(w http.ResponseWriter, r *http.Request, p parts) error {
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
	return writeJSON(w, r, a.expand(row, kinds))
}

// getAuthorizedCredentials mirrors CredentialsController.getAuthorizedAccount,
// by which Orca asks whether a user may act with an account's credentials.
func (a *api) getAuthorizedCredentials(w http.ResponseWriter, r *http.Request, p parts) error {
	if err := a.Authority.CheckAccount(r.Context(), authorize.CallerOf(r), vedette.AccountName(p["account"]), authorize.Write); err != nil {
		return a.noAccount(err, vedette.AccountName(p["account"]))
	}
	return a.getCredentials(w, r, p)
}

func (a *api) account(ctx context.Context, name vedette.AccountName) (store.AccountRow, error) {
	row, err := a.Store.Account(ctx, name)
	return row, a.noAccount(err, name)
}

// noAccount words as Clouddriver does that an account is not there.
func (a *api) noAccount(err error, name vedette.AccountName) error {
	if vedette.KindOf(err) == vedette.NotFound {
		return vedette.Errorf(vedette.NotFound, "Account does not exist (name: %s)", name)
	}
	return err
}

func (a *api) credential(row store.AccountRow) credentialView {
	p := row.Properties
	v := credentialView{Name: row.Name, Environment: or(p.Environment, string(row.Name)), AccountType: or(p.AccountType, string(row.Name)),
		CloudProvider: "kubernetes", Type: "kubernetes", RequiredGroupMembership: []string{}, Permissions: permissions(p.Permissions)}
	v.PrimaryAccount = slices.Contains(a.PrimaryAccountTypes, v.AccountType)
	v.ChallengeDestructiveActions = slices.Contains(a.ChallengeEnvironments, v.Environment)
	return v
}

func permissions(p *vedette.Permissions) *permissionView {
	if p == nil {
		return nil
	}
	return &permissionView{Read: list(p.Read), Write: list(p.Write), Execute: p.Execute}
}

func (a *api) expand(row store.AccountRow, reported []vedette.Kind) expandedView {
	return expandedView{credentialView: a.credential(row), CacheThreads: 1, Enabled: true, Namespaces: namespaces(row),
		DockerRegistries: []string{}, SpinnakerKindMap: kindMap(row.Properties.CustomResources, reported)}
}

// namespaces are those that the account is restricted to, or else those that
// its cluster has, but for what it omits.
func namespaces(row store.AccountRow) []string {
	if configured := row.Properties.Namespaces; len(configured) > 0 {
		return configured
	}
	return slices.DeleteFunc(list(slices.Clone(row.Namespaces)), func(n string) bool {
		return slices.Contains(row.Properties.OmitNamespaces, n)
	})
}

// kindMap says for each kind what Spinnaker takes it for: Clouddriver's own
// kinds, those that the account reports besides, and what its configuration says
// of custom ones.
func kindMap(custom []vedette.CustomResource, reported []vedette.Kind) map[string]string {
	m := manifest.SpinnakerKinds()
	for _, kind := range reported {
		if name := kindName(kind); m[name] == "" {
			m[name] = manifest.Unclassified
		}
	}
	for _, c := range custom {
		m[kindName(vedette.ParseKind(c.KubernetesKind))] = or(c.SpinnakerKind, manifest.Unclassified)
	}
	return m
}

func or(text, instead string) string {
	if text == "" {
		return instead
	}
	return text
}

// list returns a list that is written as [] where it is empty.
func list(l []string) []string {
	if l == nil {
		return []string{}
	}
	return l
}
