package authorize

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
)

// testProperties returns the properties of test accounts, or an error for some of them.
func testProperties(_ context.Context, account vedette.AccountName) (vedette.Properties, error) {
	switch account {
	case "open":
		return vedette.Properties{}, nil
	case "closed", "Closed", "lab", "LAB":
		return vedette.Properties{Permissions: &vedette.Permissions{Write: []string{"ops"}}}, nil
	case "read-only":
		return vedette.Properties{Permissions: &vedette.Permissions{Read: []string{"dev"}}}, nil
	case "nobody":
		return vedette.Properties{Permissions: &vedette.Permissions{}}, nil
	case "broken":
		return vedette.Properties{}, errors.New("read the properties of account broken: permissions are not an object")
	case "away":
		return vedette.Properties{}, vedette.Errorf(vedette.Unavailable, "the database is unavailable")
	}
	return vedette.Properties{}, vedette.Errorf(vedette.NotFound, "no account %s", account)
}

// hasSimilarName reports that there are accounts lab and LAB.
func hasSimilarName(_ context.Context, account vedette.AccountName) (bool, error) {
	return strings.EqualFold(string(account), "lab"), nil
}

func TestAccountPermissionsCountWithoutFiat(t *testing.T) {
	for _, tt := range []struct {
		name, account, header string
		access                Access
		want                  vedette.ErrorKind
	}{
		{"everyone may read", "closed", "", Read, ""},
		{"everyone may read, even if the lookup fails", "broken", "", Read, ""},
		{"an account without permissions", "open", "", Write, ""},
		{"an account with permissions", "closed", "", Write, vedette.Denied},
		{"an account with permissions that Gate names", "closed", "other, closed", Write, ""},
		{"execute is checked like write", "closed", "other", Execute, vedette.Denied},
		{"read permissions restrict writing too", "read-only", "", Write, vedette.Denied},
		{"permissions without a role deny", "nobody", "", Write, vedette.Denied},
		{"permissions that cannot be read deny", "broken", "", Write, vedette.Denied},
		{"permissions are not read if Gate names the account", "broken", "broken", Write, ""},
		{"a missing account is reported", "missing", "", Write, vedette.NotFound},
		{"an unavailable database is reported", "away", "", Write, vedette.Unavailable},
		{"a prefix of a name does not match", "closed", "close", Write, vedette.Denied},
		{"Gate names accounts in lower case", "Closed", "closed", Write, ""},
		{"a name in upper case is another account's", "closed", "CLOSED", Write, vedette.Denied},
		{"an account with an accent is another one", "closed", "clósed", Write, vedette.Denied},
		{"a name that two accounts may have entitles to none", "lab", "lab", Write, vedette.Denied},
		{"nor to the other", "LAB", "lab", Write, vedette.Denied},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, err := New(Config{Properties: testProperties, HasSimilar: hasSimilarName})
			if err != nil {
				t.Fatal(err)
			}
			r, err := http.NewRequest(http.MethodGet, "/", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("X-SPINNAKER-ACCOUNTS", tt.header)
			err = a.CheckAccount(t.Context(), CallerOf(r), vedette.AccountName(tt.account), tt.access)
			if vedette.KindOf(err) != tt.want || (err == nil) != (tt.want == "") {
				t.Errorf("CheckAccount: got %v, want %q", err, tt.want)
			}
			if err := a.CheckApplication(t.Context(), CallerOf(r), "any", Write); err != nil {
				t.Errorf("CheckApplication: got %v, want nil", err)
			}
			if filter, err := a.Readable(t.Context(), CallerOf(r)); filter != nil || err != nil {
				t.Errorf("Readable: got a filter and error %v, want neither", err)
			}
		})
	}
}

// TestNamesInHeadersAreExact sends names with white space that HTTP leaves, so that they are other names.
func TestNamesInHeadersAreExact(t *testing.T) {
	asked := make(chan string, 10)
	fiat := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		_, _ = io.WriteString(w, `{}`)
	}))
	defer fiat.Close()
	withFiat, err := New(Config{Fiat: &FiatConfig{BaseURL: fiat.URL}})
	if err != nil {
		t.Fatal(err)
	}
	withoutFiat, err := New(Config{Properties: testProperties})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller := CallerOf(r)
		_, _ = withFiat.Readable(r.Context(), caller) // what Fiat is asked counts
		_, _ = fmt.Fprintf(w, "%q %v", caller.User, withoutFiat.CheckAccount(r.Context(), caller, "closed", Write) == nil)
	}))
	defer server.Close()
	for _, tt := range []struct{ user, accounts, want, path string }{
		{"admin", "other , closed", `"admin" true`, "/authorize/admin"},
		{" admin\t", "\tclosed ", `"admin" true`, "/authorize/admin"},
		{"admin\u00a0", "closed\u00a0", `"admin\u00a0" false`, "/authorize/admin\u00a0"},
		{"\u3000admin", "other,\u2003closed", `"\u3000admin" false`, "/authorize/\u3000admin"},
		{"\u2028", "\u2028closed,other", `"\u2028" false`, "/authorize/\u2028"},
		{"", "", `"anonymous" false`, "/authorize/anonymous"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-SPINNAKER-USER", tt.user)
		r.Header.Set("X-SPINNAKER-ACCOUNTS", tt.accounts)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if string(got) != tt.want {
			t.Errorf("the user %q with the accounts %q: got %s, want %s", tt.user, tt.accounts, got, tt.want)
		}
		select {
		case path := <-asked:
			if path != tt.path {
				t.Errorf("the user %q: Fiat was asked for %q, want %q", tt.user, path, tt.path)
			}
		default: // the answer about this user is cached
			if tt.path != "/authorize/admin" {
				t.Errorf("the user %q: Fiat was not asked", tt.user)
			}
		}
	}
}

func TestDenialsAreLogged(t *testing.T) {
	var log strings.Builder
	a, err := New(Config{Properties: testProperties, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	c := Caller{User: "dev", Header: http.Header{"X-Spinnaker-Execution-Id": {"01J"}}}
	if err := a.CheckAccount(t.Context(), c, "broken", Write); err == nil || strings.Contains(err.Error(), "not an object") {
		t.Errorf("got %v, want an error without details", err)
	}
	for _, want := range []string{"caller.user=dev", "caller.execution=01J", "account=broken", "access=WRITE", "permissions are not an object"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not contain %s: %s", want, log.String())
		}
	}
}

func TestDenialNamesTheAccount(t *testing.T) {
	withFiat, err := New(Config{Fiat: &FiatConfig{BaseURL: "http://fiat"}})
	if err != nil {
		t.Fatal(err)
	}
	withoutFiat, err := New(Config{Properties: testProperties})
	if err != nil {
		t.Fatal(err)
	}
	c := Caller{User: "dev"}
	if got := withFiat.DenialMessage(c, "prod"); got != "Access denied to account prod" {
		t.Error(got)
	}
	if got := withoutFiat.DenialMessage(c, "prod"); got != "dev is not authorized (account: prod)" {
		t.Error(got)
	}
}
