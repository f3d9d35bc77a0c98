package clouddriver_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/readtest"
)

// TestChangedRulesApplyToKeptAnswers checks that changed rules apply to accounts whose answers are kept.
func TestChangedRulesApplyToKeptAnswers(t *testing.T) {
	w, reloadable := readtest.New(t), &clouddriver.Reloadable{}
	w.Account("dev", "pods")
	server := serve(t, clouddriver.Config{Store: w.Store, Reloadable: reloadable})
	for _, tt := range []struct {
		name  string
		rules clouddriver.CredentialRules
		want  []string
	}{
		{"the defaults", clouddriver.CredentialRules{}, []string{`"primaryAccount":false`, `"challengeDestructiveActions":false`}},
		{"a primary account", clouddriver.CredentialRules{PrimaryAccountTypes: []string{"dev"}}, []string{`"primaryAccount":true`, `"challengeDestructiveActions":false`}},
		{"a challenge", clouddriver.CredentialRules{ChallengeEnvironments: []string{"dev"}}, []string{`"primaryAccount":false`, `"challengeDestructiveActions":true`}},
	} {
		reloadable.SetCredentialRules(tt.rules)
		for _, path := range []string{"/credentials", "/credentials?expand=true", "/credentials/dev"} {
			_, body := get(t, server+path)
			for _, want := range tt.want {
				if !bytes.Contains(body, []byte(want)) {
					t.Errorf("%s: %s: got %s, want %s", tt.name, path, body, want)
				}
			}
		}
	}
}

// TestHealthShowsTheConfiguration checks that a configuration that was refused does not make the server
// unhealthy.
func TestHealthShowsTheConfiguration(t *testing.T) {
	details := func() map[string]any { return map[string]any{"error": "why"} }
	response, body := get(t, serve(t, clouddriver.Config{Store: readtest.New(t).Store, ConfigDetails: details})+"/health")
	if response.StatusCode != 200 || !strings.Contains(string(body), `"config":{"status":"UP","details":{"error":"why"}}`) {
		t.Errorf("got %d %s", response.StatusCode, body)
	}
}
