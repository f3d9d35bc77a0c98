package journey

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/redact"
)

// TestUnusableCredentialsAreShown renews the credentials of an account with ones that cannot be used. The account
// goes on with the old ones and stays Ready, and everybody who looks sees that, and since when.
func TestUnusableCredentialsAreShown(t *testing.T) {
	h := start(t, accountOf("plane", "", "namespaces"), redact.Config{})
	cluster := startCluster(t, "renewed")
	account, setToken := cluster.accountWithTokens(t, "renewed", "pods")
	setToken("t1")
	cluster.deny("revoked")
	h.agent.SetAccounts(t.Context(), []agent.Account{account})
	type condition struct {
		Type, Status, Reason, Message string
		LastTransitionTime            time.Time
	}
	shown := func() (status, message string, c condition) {
		var a struct {
			Status, Message string
			Conditions      []condition
		}
		h.get("/vedette/v1/accounts/renewed", &a)
		if len(a.Conditions) == 1 { // nothing says when these tokens end
			c = a.Conditions[0]
		}
		return a.Status, a.Message, c
	}
	file := account.Access.KubeconfigFile
	var since time.Time // of the first problem
	for _, tt := range []struct {
		name           string
		renew          func()
		status, reason string
		message        string // in the message of the account; "" for an empty one
	}{
		{"good credentials", func() {}, "True", "InUse", ""},
		{"a broken kubeconfig", func() { write(t, file, "{") }, "False", "Invalid", "the changed credentials cannot be used, so the old ones stay in use: "},
		{"a token that is not accepted", func() { setToken("revoked") }, "False", "Rejected", "the changed credentials cannot be used"},
		{"a file that is gone", func() { remove(t, file) }, "False", "Invalid", "the changed credentials cannot be used"},
		{"good credentials again", func() { setToken("t2") }, "True", "InUse", ""},
	} {
		began := time.Now()
		tt.renew()
		var got condition
		var status, message string
		h.await(tt.name+" to be shown", func() bool {
			h.agent.RereadCredentials()
			status, message, got = shown()
			return status == "Ready" && got.Type == "CredentialsCurrent" && got.Status == tt.status && got.Reason == tt.reason
		})
		if (message == "") != (tt.message == "") || !strings.Contains(message, tt.message) || message != got.Message {
			t.Errorf("%s: got message %q and condition %q, want %q", tt.name, message, got.Message, tt.message)
		}
		if strings.Contains(message, "revoked") {
			t.Errorf("%s: the message has the token: %s", tt.name, message)
		}
		switch {
		case got.LastTransitionTime.IsZero() || time.Since(got.LastTransitionTime) > time.Hour:
			t.Errorf("%s: got last transition %v", tt.name, got.LastTransitionTime)
		case tt.reason == "Invalid" && since.IsZero():
			since = got.LastTransitionTime
		case tt.status == "False" && got.LastTransitionTime.Sub(since).Abs() > time.Second && got.LastTransitionTime.After(began):
			t.Errorf("%s: got last transition %v, want that of the first problem, %v", tt.name, got.LastTransitionTime, since)
		}
	}
	if n := cluster.lists("pods"); n != 1 {
		t.Errorf("got %d lists, want that of the beginning: the account was registered again", n)
	}
}

// TestCredentialsThatEndAreShown gives an account a token that ends soon, and renews it.
func TestCredentialsThatEndAreShown(t *testing.T) {
	h := start(t, accountOf("plane", "", "namespaces"), redact.Config{})
	cluster := startCluster(t, "ending")
	account, setToken := cluster.accountWithTokens(t, "ending", "pods")
	token := func(end time.Time) string {
		claims := fmt.Sprintf(`{"iat":%d,"exp":%d}`, time.Now().Add(-1000*time.Hour).Unix(), end.Unix())
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
	}
	end := time.Now().Add(time.Hour)
	setToken(token(end))
	h.agent.SetAccounts(t.Context(), []agent.Account{account})
	for _, tt := range []struct {
		name                    string
		token                   string // "" for the one before
		status, reason, message string
	}{
		{"a token that ends soon", "", "False", "EndsSoon",
			"the token of the account ends at " + end.UTC().Format(time.RFC3339) + ": renew it in the files of the account"},
		{"a renewed token", token(time.Now().Add(2000 * time.Hour)), "True", "NotEnding", ""},
		{"a token that has ended, and that the cluster still accepts", token(time.Now().Add(-time.Hour)), "False", "Ended", "the token of the account has ended at "},
	} {
		if tt.token != "" {
			setToken(tt.token)
		}
		var message string
		h.await(tt.name+" to be shown", func() bool {
			h.agent.RereadCredentials()
			var a struct {
				Message    string
				Conditions []struct{ Type, Status, Reason, Message string }
			}
			h.get("/vedette/v1/accounts/ending", &a)
			if len(a.Conditions) != 2 || a.Conditions[1].Type != "CredentialsValid" {
				return false
			}
			got := a.Conditions[1]
			message = a.Message
			return got.Status == tt.status && got.Reason == tt.reason && message == got.Message
		})
		if (message == "") != (tt.message == "") || !strings.HasPrefix(message, tt.message) {
			t.Errorf("%s: got %q, want %q", tt.name, message, tt.message)
		}
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, file string) {
	t.Helper()
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
}
