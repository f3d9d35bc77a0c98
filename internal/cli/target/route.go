package target

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/fanout"
	"github.com/vedette-io/vedette/internal/cli/manifests"
)

// DocumentFanOut is a fan-out over the accounts that manifests from files are for.
type DocumentFanOut struct {
	*fanout.FanOut
	documents []manifests.Document
	routed    bool // each document is for its own account
}

// NewFanOutForDocuments returns a fan-out over the accounts that match --account. If it is not given,
// and the documents name their accounts, as output of vedette does, each document is for its own account.
func NewFanOutForDocuments(cmd *cobra.Command, pattern string, files manifests.LoadResult,
	change fanout.ChangeOptions) (*DocumentFanOut, error) {
	accounts, err := accountsOf(files.Documents)
	if err != nil && pattern == "" {
		return nil, err
	}
	f := &DocumentFanOut{documents: files.Documents, routed: pattern == "" && len(accounts) > 0}
	if f.routed {
		f.FanOut, err = newFanOutFor(cmd, accounts, change)
	} else {
		f.FanOut, err = fanout.NewForChanges(cmd, pattern, change)
	}
	if err != nil {
		return nil, err
	}
	if f.routed {
		f.LoadErrors = append(files.LoadErrors, f.unknownAccounts()...)
	} else {
		f.LoadErrors = append(files.LoadErrors, f.leaveOutIncomplete()...)
	}
	return f, nil
}

// leaveOutIncomplete removes documents that lack what redaction took, if they would be sent to other accounts than their own.
func (f *DocumentFanOut) leaveOutIncomplete() (errs []error) {
	var complete []manifests.Document
	for _, d := range f.documents {
		var err error
		for _, account := range f.Accounts {
			err = cmp.Or(err, d.CheckElsewhere(account))
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		complete = append(complete, d)
	}
	f.documents = complete
	return errs
}

// accountsOf returns the accounts that documents name, without repetitions. It fails if some name one
// and others do not, because nobody can say which account these are for.
func accountsOf(docs []manifests.Document) ([]string, error) {
	accounts := map[string]bool{}
	for _, d := range docs {
		accounts[d.Account] = true
	}
	if accounts[""] && len(accounts) > 1 {
		i := slices.IndexFunc(docs, func(d manifests.Document) bool { return d.Account == "" })
		return nil, vedette.Errorf(vedette.Invalid, "%s: %s does not name its account in the annotation %s, and other objects do: select the accounts of all with --account",
			docs[i].Source, docs[i].DisplayName(), vedette.AccountAnnotation)
	}
	delete(accounts, "")
	return slices.Sorted(maps.Keys(accounts)), nil
}

// newFanOutFor returns a fan-out over accounts with these names, as far as the server has them. A name is not a pattern,
// and the server would reject the whole list for one that it does not have.
func newFanOutFor(cmd *cobra.Command, accounts []string, change fanout.ChangeOptions) (*fanout.FanOut, error) {
	fan, err := fanout.NewForChanges(cmd, "*", change)
	if err != nil || change.IsClientDryRun() {
		return fan, err
	}
	fan.Accounts = slices.DeleteFunc(fan.Accounts, func(name string) bool { return !slices.Contains(accounts, name) })
	return fan, nil
}

// unknownAccounts returns an error for each document whose account the server does not have.
func (f *DocumentFanOut) unknownAccounts() (errs []error) {
	for _, d := range f.documents {
		if !slices.Contains(f.Accounts, d.Account) && !slices.Equal(f.Accounts, []string{""}) {
			errs = append(errs, vedette.Errorf(vedette.NotFound,
				"%s: %s is of the account %s, which the server does not have: select accounts with --account", d.Source, d.DisplayName(), d.Account))
		}
	}
	return errs
}

// ForEachAccount calls work for every account, with the documents for it as they are applied there.
func (f *DocumentFanOut) ForEachAccount(ctx context.Context, work func(context.Context, *fanout.Run, []manifests.Document) error) error {
	return f.FanOut.ForEachAccount(ctx, func(ctx context.Context, run *fanout.Run) error {
		documents, err := f.documentsFor(run.Account)
		if err != nil {
			return err
		}
		return work(ctx, run, documents)
	})
}

func (f *DocumentFanOut) documentsFor(account string) ([]manifests.Document, error) {
	var all []manifests.Document
	for _, d := range f.documents {
		if f.routed && account != "" && d.Account != account {
			continue
		}
		d, err := d.ForAccount(account)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

func (f *Flags) newFanOut(cmd *cobra.Command, all []Target) (*fanout.FanOut, error) {
	if len(f.ownAccounts) == 0 {
		return fanout.NewForChanges(cmd, f.Account, f.Change)
	}
	fan, err := newFanOutFor(cmd, f.ownAccounts, f.Change)
	if err != nil || f.Change.IsClientDryRun() {
		return fan, err
	}
	for _, t := range all {
		if !slices.Contains(fan.Accounts, t.Account) {
			fan.LoadErrors = append(fan.LoadErrors, vedette.Errorf(vedette.NotFound,
				"%s is of the account %s, which the server does not have: select accounts with --account", t.DisplayName(), t.Account))
		}
	}
	return fan, nil
}

// ignoresAccounts reports whether objects in files are meant in all accounts of --account, whichever they name.
func (f *Flags) ignoresAccounts() bool { return len(f.Files) > 0 && len(f.ownAccounts) == 0 }
