package clouddriver_test

import (
	"bytes"
	"context"
	"net/http"
	"testing"

	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/read"
)

// emptyInventory is a store whose inventory lists nothing, as for accounts with too many clusters.
type emptyInventory struct{ *store.Store }

func (emptyInventory) Inventory(context.Context) (*read.Inventory, error) {
	return &read.Inventory{}, nil
}

// TestApplicationThatIsNotListedIsFound asks for an application that the list of all applications
// leaves out. Orca takes 404 for a reason to delete it.
func TestApplicationThatIsNotListedIsFound(t *testing.T) {
	w := viewWorld(t)
	_, want := get(t, serve(t, clouddriver.Config{Store: w.Store})+"/applications/shop")
	url := serve(t, clouddriver.Config{Store: emptyInventory{w.Store}})
	response, got := get(t, url+"/applications/shop")
	if response.StatusCode != http.StatusOK || !bytes.Equal(got, want) {
		t.Errorf("got %d %s, want %s", response.StatusCode, got, want)
	}
	if response, body := get(t, url+"/applications/nothing"); response.StatusCode != http.StatusNotFound {
		t.Errorf("an application that does not exist: got %d %s, want 404", response.StatusCode, body)
	}
}
