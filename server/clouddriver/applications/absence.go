package applications

import (
	"context"
	"net/http"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/infrastructure"
	"github.com/vedette-io/vedette/server/store/read"
)

// confirmAbsence returns absent, which says that something does not exist, if that is certain. A
// stage acts on it: Orca deletes an application that has no clusters, or deploys because a
// cluster is empty. If the data of an account may be incomplete, a stage gets an error instead,
// and fails rather than does harm. Views get absent, because an application without clusters must
// not be hidden from Deck while any of thousands of agents is away.
func (a *api) confirmAbsence(r *http.Request, accounts []vedette.AccountName, absent error) error {
	if !web.IsFromStage(r) {
		return absent
	}
	account, reason, err := a.findIncomplete(r.Context(), accounts)
	if err != nil {
		return err
	}
	if account == "" {
		return absent
	}
	return vedette.Errorf(vedette.Unavailable, "%w, but this is not certain: %s (account: %s). Try again later, or remove the account if its cluster is gone",
		absent, reason, account)
}

// findIncomplete returns the first account whose server groups may not all be known, and why.
// Accounts that do not exist are complete.
func (a *api) findIncomplete(ctx context.Context, accounts []vedette.AccountName) (account vedette.AccountName, reason string, err error) {
	settings, err := a.Views.Settings(ctx)
	if err != nil {
		return "", "", err
	}
	known := slices.DeleteFunc(slices.Clone(accounts), func(name vedette.AccountName) bool {
		return !settings.Has(name) || web.IsLeftOut(ctx, name)
	})
	for _, name := range known {
		if !a.Connected(name) {
			return name, "no agent is connected", nil
		}
	}
	if len(known) == 0 {
		return "", "", nil
	}
	feeds, err := a.Store.Feeds(ctx, known...)
	if err != nil {
		return "", "", err
	}
	synced := map[vedette.AccountName]bool{}
	for _, f := range feeds {
		synced[f.Account] = true
		if reason := incompleteReason(f); reason != "" {
			return f.Account, reason, nil
		}
	}
	for _, name := range known {
		if !synced[name] {
			return name, "its agent has not reported yet which kinds it caches", nil
		}
	}
	return "", "", nil
}

// incompleteReason returns why a feed of server groups may miss objects; empty if it does not. A
// kind that the agent may not read has none that count.
func incompleteReason(f read.FeedStatus) string {
	isCluster := slices.Contains(infrastructure.ServerGroupKinds, f.Feed.Kind) || slices.Contains(infrastructure.ManagerKinds, f.Feed.Kind)
	if !isCluster || f.State == vedette.FeedLive || f.State == vedette.FeedDenied {
		return ""
	}
	return "its agent does not watch " + f.Feed.Kind.Name + " now"
}
