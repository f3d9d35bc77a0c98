package infrastructure

import (
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/read"
)

// Visibility decides what views show.
type Visibility struct {
	// OnlyManaged are the accounts that show only objects that Spinnaker deployed.
	OnlyManaged map[vedette.AccountName]bool
	// Known reports whether an application may be shown; nil means all.
	Known func(application string) bool
}

// Shows reports whether views show an object.
func (v *Visibility) Shows(o *Object) bool {
	return !o.Ignored && (o.Managed || !v.OnlyManaged[o.Account]) && v.ShowsKind(o.Kind, o.Moniker.App)
}

// ShowsKind reports whether views show objects of a kind that belong to an application. Only objects
// of LogicalKinds are hidden with their application.
func (v *Visibility) ShowsKind(kind vedette.Kind, application string) bool {
	return v.Known == nil || v.Known(application) || !slices.Contains(LogicalKinds, kind)
}

// ShowsCluster reports whether views show any object of a cluster of an application that may be shown.
func (v *Visibility) ShowsCluster(account vedette.AccountName, c read.Cluster) bool {
	return c.Managed > 0 || c.Objects > 0 && !v.OnlyManaged[account]
}
