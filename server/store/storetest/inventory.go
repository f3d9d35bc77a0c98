package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/attributes"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/read"
)

// Inventory reads which applications and clusters there are.
func Inventory(t *testing.T, s *store.Store) *read.Inventory {
	t.Helper()
	v, err := s.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// InventoryLines returns an inventory as a line for each application.
func InventoryLines(v *read.Inventory) []string {
	var lines []string
	for _, name := range v.Applications() {
		line := name
		for i, account := range v.Application(name).Accounts {
			if i > 0 {
				line += ";"
			}
			line += " " + string(account.Account) + ":"
			for _, c := range account.Clusters {
				line += fmt.Sprintf(" %s %d %d", c.Name, c.Objects, c.Managed)
			}
			if u := account.Unclustered; u.Objects > 0 {
				line += fmt.Sprintf(" unclustered %d %d", u.Objects, u.Managed)
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// CheckInventory compares the counts of clusters with the objects.
func CheckInventory(t *testing.T, s *store.Store) {
	t.Helper()
	if t.Failed() {
		return
	}
	rows, err := s.KindAttributes(t.Context(), read.AttributesQuery{})
	if err != nil {
		t.Fatal(err)
	}
	type cluster struct {
		application string
		account     vedette.AccountName
		name        string
	}
	want, got := map[cluster][2]int64{}, map[cluster][2]int64{}
	for _, r := range rows {
		key := cluster{r.Moniker.App, r.Account, r.Moniker.Cluster}
		switch {
		case r.Ignored, r.Moniker.App == "":
			continue
		case attributes.IsApplicationMember(r.Kind):
			key.name = ""
		case !attributes.IsClusterMember(r.Kind), r.Moniker.Cluster == "":
			continue
		}
		count := want[key]
		count[0]++
		if r.Managed {
			count[1]++
		}
		want[key] = count
	}
	v := Inventory(t, s)
	for _, name := range v.Applications() {
		for _, account := range v.Application(name).Accounts {
			for _, c := range account.Clusters {
				got[cluster{name, account.Account, c.Name}] = [2]int64{c.Objects, c.Managed}
			}
			if u := account.Unclustered; u.Objects > 0 {
				got[cluster{name, account.Account, ""}] = [2]int64{u.Objects, u.Managed}
			}
		}
	}
	if !slices.Equal(sortedLines(got), sortedLines(want)) {
		t.Errorf("the clusters are %v\nwant %v, as the objects say", sortedLines(got), sortedLines(want))
	}
}

func sortedLines[K comparable, V any](m map[K]V) []string {
	var lines []string
	for key, value := range m {
		lines = append(lines, fmt.Sprint(key, value))
	}
	slices.Sort(lines)
	return lines
}
