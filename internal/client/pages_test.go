package client

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
)

// TestAllPagesAreRead checks that a list is read to its end, that fields that the client does not
// know are kept, and that a server that repeats a page does not keep the client forever.
func TestAllPagesAreRead(t *testing.T) {
	answers := map[string]string{
		"":  `{"items":[{"name":"a","future":1}],"cursor":"b"}`,
		"b": `{"items":[{"name":"b"}],"cursor":"c"}`,
		"c": `{"items":[{"name":"c"}]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, answers[r.URL.Query().Get("cursor")])
	}))
	defer server.Close()
	c, err := New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	items, err := c.AccountItems(t.Context(), "")
	if err != nil || len(items) != 3 || items[2].Value.Name != "c" || string(items[0].Raw) != `{"name":"a","future":1}` {
		t.Errorf("got %+v, %v", items, err)
	}
	answers["c"] = answers["b"]
	if _, err := c.Accounts(t.Context(), ""); vedette.KindOf(err) != vedette.Unavailable || !strings.Contains(err.Error(), "same page") {
		t.Errorf("got %v, want an error about the repeated page", err)
	}
}

// TestHistorySaysWhetherThereIsMore checks the limit of the history.
func TestHistorySaysWhetherThereIsMore(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("cursor") == "" {
			fmt.Fprint(w, `{"items":[{"id":"1"},{"id":"2"}],"cursor":"x"}`)
			return
		}
		fmt.Fprint(w, `{"items":[{"id":"3"}]}`)
	}))
	defer server.Close()
	c, err := New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[int]string{2: "2 x", 3: "3 "} {
		all, err := c.Operations(t.Context(), HistoryQuery{Limit: limit})
		if got := fmt.Sprint(len(all.Items), " ", all.Cursor); got != want || err != nil {
			t.Errorf("limit %d: got %s, %v, want %s", limit, got, err, want)
		}
	}
}
