// Package suite is the suite that every database must pass.
package suite

import (
	"slices"
	"testing"

	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/storetest"
	"github.com/vedette-io/vedette/server/store/storetest/historytest"
	"github.com/vedette-io/vedette/server/store/storetest/lastanswerstest"
	"github.com/vedette-io/vedette/server/store/storetest/readtest"
	"github.com/vedette-io/vedette/server/store/storetest/registrytest"
	"github.com/vedette-io/vedette/server/store/storetest/taskstest"
	"github.com/vedette-io/vedette/server/store/storetest/writetest"
)

// Run runs the suite, in parallel; if groups are named, only these. Each call of open must return a store with an empty
// database of its own.
func Run(t *testing.T, open func(t *testing.T) *store.Store, groups ...string) {
	t.Parallel()
	for _, group := range []struct {
		name  string
		tests map[string]func(*testing.T, *store.Store)
	}{
		{"accounts", registrytest.Accounts}, {"accounts of several servers", registrytest.Servers},
		{"many accounts at once", writetest.Many}, {"held marks", writetest.HeldMarks}, {"effects of other servers", writetest.OtherEffects}, {"resumption", writetest.Resumption},
		{"commits", writetest.Commits}, {"feeds", writetest.Feeds}, {"faults", writetest.Faults}, {"oracle", writetest.RandomBatches},
		{"write-through", writetest.WriteThrough},
		{"reads", readtest.Reads}, {"names", readtest.Names}, {"attributes", readtest.Attributes}, {"search", readtest.Search},
		{"inventory", readtest.Inventory},
		{"operations", historytest.Operations}, {"tasks", taskstest.Tasks}, {"upstream answers", lastanswerstest.UpstreamAnswers},
	} {
		if len(groups) > 0 && !slices.Contains(groups, group.name) {
			continue
		}
		for name, test := range group.tests {
			t.Run(group.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				s := open(t)
				test(t, s)
				storetest.CheckInventory(t, s)
			})
		}
	}
}
