package authorize

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
)

// testProperties are accounts whose properties can be looked up, or not.
func testProperties(_ context.Context, account vedette.AccountName) (vedette.Properties, error) {
	switch account {
	case "open":
		return vedette.Properties{}, nil
	case "closed":
		return vedette.Properties{Permissions: &vedette.Permissions{Write: []string{"ops"}}}, nil
	case "read-only":
		return vedette.Properties{Permissions: &vedette.Permissions{Read: []string{"dev"}}}, nil
	case "nobody":
		return vedette.Properties{Permissions: &vedette.Permissions{}}, nil
	case "broken":
		return vedette.Properties{}, errors.New("read the properties of account broken: permissions are no object")
	case "away":
		return vedette.Properties{}, vedette.Errorf(vedette.Unavailable, "the database is away")
	}
	return vedette.Properties{}, vedette.Errorf(vedette.NotFound, "no account %s", account)
}

func TestWithoutFiat(t *testing.T) {
	for _, tt := range []struct {
		why, account, header string
		access               Access
		want                 vedette.ErrorKind
	}{
		{"everyone reads", "closed", "", Read, ""},
		{"even what can't be looked up", "broken", "", Read, ""},
		{"an open account is open", "open", "", Write, ""},
		{"a restricted one is not", "closed", "", Write, vedette.Denied},
		{"unless Gate names it", "closed", "other, Closed", Write, ""},
		{"to run things is no less", "closed", "other", Execute, vedette.Denied},
		{"a role to read restricts writing too", "read-only", "", Write, vedette.Denied},
		{"permissions without a role open nothing", "nobody", "", Write, vedette.Denied},
		{"permissions that can't be read deny", "broken", "", Write, vedette.Denied},
		{"and need not be read where Gate names the account", "broken", "broken", Write, ""},
		{"an account that is not there is told as such", "missing", "", Write, vedette.NotFound},
		{"so is a database that is away", "away", "", Write, vedette.Unavailable},
		{"a part of a name is no name", "closed", "close", Write, vedette.Denied},
	} {
		t.Run(tt.why, func(t *testing.T) {
			a, err := New(Config{Properties: testProperties})
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
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if err := a.CheckApplication(t.Context(), CallerOf(r), "any", Write); err != nil {
				t.Errorf("application: %v", err)
			}
			if filter, err := a.Readable(t.Context(), CallerOf(r)); filter != nil || err != nil {
				t.Errorf("a choice of accounts, %v", err)
			}
		})
	}
}

func TestDenialsAreLogged(t *testing.T) {
	var log strings.Builder
	a, err := New(Config{Properties: testProperties, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	c := Caller{User: "dev", Header: http.Header{"X-Spinnaker-Execution-Id": {"01J"}}}
	if err := a.CheckAccount(t.Context(), c, "broken", Write); err == nil || strings.Contains(err.Error(), "no object") {
		t.Errorf("the caller is told %v", err)
	}
	for _, want := range []string{"caller.user=dev", "caller.execution=01J", "account=broken", "access=WRITE", "permissions are no object"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%s is missing in %s", want, log.String())
		}
	}
}

func TestDenialMessage(t *testing.T) {
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
