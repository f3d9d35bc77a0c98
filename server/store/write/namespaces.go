package write

import (
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/catalog"
	"github.com/vedette-io/vedette/server/store/commit"
)

// noteNamespaces notes that a commit changed the Namespaces of an account, or may have.
func (w *Writer) noteNamespaces(account vedette.AccountName, changes []commit.Change, err error) {
	if err != nil || slices.ContainsFunc(changes, func(c commit.Change) bool { return c.Key.Kind == catalog.NamespaceKind }) {
		w.versions.AccountLog.Note(account)
	}
}
