package cloud_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette/agent/cloud"
	"github.com/vedette-io/vedette/agent/cloud/cloudtest"
	"github.com/vedette-io/vedette/internal/configfile"
)

// startServices starts the token services for all sources, which find no identity in the environment.
func startServices(t *testing.T) *cloudtest.Services {
	t.Helper()
	s := cloudtest.Start(t)
	cloud.UseServices(t, s.Transport())
	removeIdentities(t)
	return s
}

// removeIdentities removes what the environment says of identities.
func removeIdentities(t *testing.T) {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "AWS_") || strings.HasPrefix(name, "AZURE_") || strings.HasPrefix(name, "GOOGLE_") {
			t.Setenv(name, "")
		}
	}
}

func setenv(t *testing.T, env map[string]string) {
	t.Helper()
	for name, value := range env {
		t.Setenv(name, value)
	}
}

func newSource(t *testing.T, c cloud.Cluster, google cloud.Google) *cloud.Source {
	t.Helper()
	google.ReadFile = os.ReadFile
	source, err := c.Source(google)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func eks(e cloud.EKS) cloud.Cluster {
	e.ClusterName = "prod"
	return cloud.Cluster{Provider: "eks", EKS: e}
}

// TestTokensOfEachIdentity gets a token with each identity that an agent may have, and asks the services whose it is.
func TestTokensOfEachIdentity(t *testing.T) {
	s := startServices(t)
	irsa := func(t *testing.T) map[string]string {
		t.Helper()
		return map[string]string{"AWS_ROLE_ARN": s.AWS.RoleARN, "AWS_REGION": "eu-west-1",
			"AWS_WEB_IDENTITY_TOKEN_FILE": cloudtest.WriteFile(t, "token", s.AWS.WebIdentityToken)}
	}
	keys := map[string]string{"AWS_ACCESS_KEY_ID": s.AWS.AccessKeyID, "AWS_SECRET_ACCESS_KEY": s.AWS.SecretAccessKey}
	s.Entra.ServerID = rand.Text() // the library keeps tokens of managed identities in a variable
	aks := func(a cloud.AKS) cloud.Cluster {
		a.ServerID = s.Entra.ServerID
		return cloud.Cluster{Provider: "aks", AKS: a}
	}
	with := func(all ...map[string]string) map[string]string {
		merged := map[string]string{}
		for _, env := range all {
			for name, value := range env {
				merged[name] = value
			}
		}
		return merged
	}
	azure := map[string]string{"AZURE_CLIENT_ID": s.Entra.ClientID, "AZURE_TENANT_ID": s.Entra.Tenant}
	inRegion := map[string]string{"AWS_REGION": "eu-west-1"}
	for _, tt := range []struct {
		name    string
		cluster cloud.Cluster
		env     map[string]string
		google  cloud.Google
		user    string
		life    time.Duration
	}{
		{"IRSA", eks(cloud.EKS{}), irsa(t), cloud.Google{}, s.AWS.RoleARN, 14 * time.Minute},
		{"a role of the cluster's account", eks(cloud.EKS{Region: "eu-west-1", RoleARN: s.AWS.ClusterRoleARN, ExternalID: configfile.NewSecret(s.AWS.ExternalID)}),
			irsa(t), cloud.Google{}, s.AWS.ClusterRoleARN, 14 * time.Minute},
		{"EKS Pod Identity", eks(cloud.EKS{}), with(inRegion, map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.23/v1/credentials",
			"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": cloudtest.WriteFile(t, "pod", s.AWS.PodToken)}), cloud.Google{}, s.AWS.RoleARN, 14 * time.Minute},
		{"variables of AWS", eks(cloud.EKS{Region: "eu-west-1"}), keys, cloud.Google{}, s.AWS.RoleARN, 14 * time.Minute},
		{"a profile of AWS", eks(cloud.EKS{Profile: "ops"}), map[string]string{"AWS_CONFIG_FILE": cloudtest.WriteFile(t, "config",
			fmt.Sprintf("[profile ops]\nregion = eu-west-1\naws_access_key_id = %s\naws_secret_access_key = %s\n", s.AWS.AccessKeyID, s.AWS.SecretAccessKey))},
			cloud.Google{}, s.AWS.RoleARN, 14 * time.Minute},
		{"GKE's metadata server", cloud.Cluster{Provider: "gke"}, nil, cloud.Google{}, s.Google.Email, 59 * time.Minute},
		{"a service account of Google", cloud.Cluster{Provider: "gke"}, nil, cloud.Google{KeyFile: s.Google.KeyFile(t)}, s.Google.Email, 59 * time.Minute},
		{"a service account of Google in the environment", cloud.Cluster{Provider: "gke"},
			map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": s.Google.KeyFile(t)}, cloud.Google{}, s.Google.Email, 59 * time.Minute},
		{"a user of gcloud", cloud.Cluster{Provider: "gke"}, map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": s.Google.UserFile(t)},
			cloud.Google{}, s.Google.Email, 59 * time.Minute},
		{"workload identity federation", cloud.Cluster{Provider: "gke"}, map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": s.Google.FederationFile(t)},
			cloud.Google{}, s.Google.Email, 59 * time.Minute},
		{"workload identity of Azure", aks(cloud.AKS{Login: "workloadidentity"}), with(azure, map[string]string{
			"AZURE_FEDERATED_TOKEN_FILE": cloudtest.WriteFile(t, "token", s.Entra.FederatedToken)}), cloud.Google{}, s.Entra.ClientID, 59 * time.Minute},
		{"a managed identity of the node", aks(cloud.AKS{Login: "msi"}), nil, cloud.Google{}, s.Entra.ClientID, 59 * time.Minute},
		{"a managed identity by its ID", aks(cloud.AKS{Login: "MSI", ClientID: s.Entra.ClientID}), nil, cloud.Google{}, s.Entra.ClientID, 59 * time.Minute},
		{"a service principal", aks(cloud.AKS{Login: "spn", TenantID: s.Entra.Tenant, ClientID: s.Entra.ClientID,
			ClientSecret: configfile.NewSecret(s.Entra.ClientSecret)}), nil, cloud.Google{}, s.Entra.ClientID, 59 * time.Minute},
		{"a service principal with a certificate", aks(cloud.AKS{Login: "spn", TenantID: s.Entra.Tenant, ClientID: s.Entra.ClientID,
			ClientCertificateFile: s.Entra.CertificateFile(t)}), nil, cloud.Google{}, s.Entra.ClientID, 59 * time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			setenv(t, tt.env)
			token, err := newSource(t, tt.cluster, tt.google).Token(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := s.UserOf(t.Context(), "prod", token.Value); got != tt.user {
				t.Errorf("got a token of %q, want %q", got, tt.user)
			}
			if got := s.UserOf(t.Context(), "other", token.Value); tt.cluster.Provider == "eks" && got != "" {
				t.Errorf("the token is valid for another cluster, as %q", got)
			}
			if left := time.Until(token.Expires); left > tt.life || left < tt.life-time.Minute {
				t.Errorf("got a token for %v, want %v", left, tt.life)
			}
		})
	}
}

// TestTokenEndsWithWhatSignedIt checks that a token of EKS is replaced when the credentials that have signed it end.
func TestTokenEndsWithWhatSignedIt(t *testing.T) {
	s := startServices(t)
	s.AWS.Lifetime = 5 * time.Minute
	setenv(t, map[string]string{"AWS_ROLE_ARN": s.AWS.RoleARN, "AWS_REGION": "eu-west-1",
		"AWS_WEB_IDENTITY_TOKEN_FILE": cloudtest.WriteFile(t, "token", s.AWS.WebIdentityToken)})
	token, err := newSource(t, eks(cloud.EKS{}), cloud.Google{}).Token(t.Context())
	if left := time.Until(token.Expires); err != nil || left > 5*time.Minute {
		t.Errorf("got a token for %v, %v, want at most 5 minutes", left, err)
	}
}

// TestReplacedFilesAreRead checks that a token in a file that Kubernetes has replaced counts for the next token.
func TestReplacedFilesAreRead(t *testing.T) {
	s := startServices(t)
	file := cloudtest.WriteFile(t, "token", "expired")
	setenv(t, map[string]string{"AWS_ROLE_ARN": s.AWS.RoleARN, "AWS_REGION": "eu-west-1", "AWS_WEB_IDENTITY_TOKEN_FILE": file,
		"AZURE_CLIENT_ID": s.Entra.ClientID, "AZURE_TENANT_ID": s.Entra.Tenant, "AZURE_FEDERATED_TOKEN_FILE": file})
	for provider, token := range map[string]string{"eks": s.AWS.WebIdentityToken, "aks": s.Entra.FederatedToken} {
		if err := os.WriteFile(file, []byte("expired"), 0o600); err != nil {
			t.Fatal(err)
		}
		source := newSource(t, cloud.Cluster{Provider: provider, EKS: cloud.EKS{ClusterName: "prod"}}, cloud.Google{})
		if _, err := source.Token(t.Context()); err == nil {
			t.Errorf("%s: got a token for an expired one", provider)
		}
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := source.Token(t.Context()); err != nil {
			t.Errorf("%s: got error %v", provider, err)
		}
	}
}
