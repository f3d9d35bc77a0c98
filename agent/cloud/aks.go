package cloud

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	azcloud "github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/vedette-io/vedette/internal/configfile"
)

// AKS says as whom tokens of Entra ID are issued for clusters of AKS.
type AKS struct {
	// How the agent logs in to Entra ID: `workloadidentity` (the pod's ServiceAccount), `msi` (a managed identity of the node), or `spn` (a
	// service principal with clientSecret or clientCertificateFile).
	Login string `config:"login" default:"workloadidentity" enum:"workloadidentity,msi,spn"`
	// Tenant of Entra ID. Default: AZURE_TENANT_ID, which the webhook of workload identity sets.
	TenantID string `config:"tenantId"`
	// Client ID of the application or of the managed identity. Default: AZURE_CLIENT_ID; for msi, the node's only identity.
	ClientID string `config:"clientId"`
	// Secret of the service principal, for spn. Default: AZURE_CLIENT_SECRET.
	ClientSecret configfile.Secret `config:"clientSecret"`
	// PEM or PKCS#12 file with certificate and key of the service principal, for spn. The agent reads it for each token. Default:
	// AZURE_CLIENT_CERTIFICATE_PATH.
	ClientCertificateFile string `config:"clientCertificateFile"`
	// Application that tokens are for. All clusters of AKS with Entra ID have the default.
	ServerID string `config:"serverId" default:"6dae42f8-4368-4678-94ff-3960e28e3630"`
	// Address of Entra ID. Default: AZURE_AUTHORITY_HOST, or that of the public cloud. Other clouds have https://login.microsoftonline.us/ and
	// https://login.chinacloudapi.cn/.
	AuthorityHost string `config:"authorityHost"`

	certificatePassword string
	federatedTokenFile  string // empty for AZURE_FEDERATED_TOKEN_FILE
	identityResourceID  string // of a managed identity
}

const (
	aksPage     = "docs/cloud-aks.md"
	aksServerID = "6dae42f8-4368-4678-94ff-3960e28e3630"
	loginMSI    = "msi"
	loginSPN    = "spn"
	loginWI     = "workloadidentity"
	publicEntra = "https://login.microsoftonline.com/"
)

func (a AKS) source() *Source {
	s := &Source{name: "AKS cluster, by " + a.Login, service: "Entra ID", page: aksPage, issue: a.issue,
		rejected: "the cluster does not use Entra ID, or another tenant: see " + aksPage}
	if a.Login == loginMSI {
		s.service = "the metadata service of Azure"
		s.noIdentity = "the metadata service of Azure gives the agent no managed identity"
	}
	return s
}

func (a AKS) issue(ctx context.Context, client *http.Client) (Token, error) {
	credential, err := a.credential(client)
	if err != nil {
		return Token{}, err
	}
	answer, err := credential.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{cmp.Or(a.ServerID, aksServerID) + "/.default"}})
	if err != nil {
		return Token{}, err //nolint:wrapcheck // Source names what it is about
	}
	return newToken(answer.Token, answer.ExpiresOn), nil
}

func (a AKS) credential(client *http.Client) (azcore.TokenCredential, error) {
	if a.Login == loginMSI {
		return a.managedIdentity(client)
	}
	authority, err := a.authority()
	if err != nil {
		return nil, err
	}
	options := clientOptions(&http.Client{Transport: hostTransport{authority.Host, client.Transport}, CheckRedirect: client.CheckRedirect})
	options.Cloud = azcloud.Configuration{ActiveDirectoryAuthorityHost: authority.String()}
	tenant, id := cmp.Or(a.TenantID, os.Getenv("AZURE_TENANT_ID")), a.clientID()
	if missing := missingNames(tenant, "tenantId", "AZURE_TENANT_ID", id, "clientId", "AZURE_CLIENT_ID"); missing != "" {
		return nil, setupErrorf("%s: see %s", missing, aksPage)
	}
	if a.Login == loginSPN {
		return a.servicePrincipal(tenant, id, options)
	}
	file := cmp.Or(a.federatedTokenFile, os.Getenv("AZURE_FEDERATED_TOKEN_FILE"))
	if file == "" {
		return nil, setupErrorf("AZURE_FEDERATED_TOKEN_FILE is not set: label the agent's pods azure.workload.identity/use: \"true\" and annotate "+
			"their ServiceAccount, see %s", aksPage)
	}
	return azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{ //nolint:wrapcheck // as above
		ClientOptions: options, TenantID: tenant, ClientID: id, TokenFilePath: file, DisableInstanceDiscovery: true})
}

// clientOptions return an SDK's options: one attempt, because the caller retries.
func clientOptions(client *http.Client) azcore.ClientOptions {
	return azcore.ClientOptions{Transport: client, Retry: policy.RetryOptions{MaxRetries: -1},
		Telemetry: policy.TelemetryOptions{Disabled: true}}
}

func (a AKS) clientID() string { return cmp.Or(a.ClientID, os.Getenv("AZURE_CLIENT_ID")) }

// missingNames says which of some settings are empty. It takes a value, a key and a variable of each.
func missingNames(triples ...string) string {
	var missing []string
	for t := range slices.Chunk(triples, 3) {
		if t[0] == "" {
			missing = append(missing, fmt.Sprintf("%s (or %s)", t[1], t[2]))
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return strings.Join(missing, " and ") + " must be set"
}

func (a AKS) managedIdentity(client *http.Client) (azcore.TokenCredential, error) {
	options := &azidentity.ManagedIdentityCredentialOptions{ClientOptions: clientOptions(client)}
	switch id := a.clientID(); {
	case a.identityResourceID != "":
		options.ID = azidentity.ResourceID(a.identityResourceID)
	case id != "":
		options.ID = azidentity.ClientID(id)
	}
	return azidentity.NewManagedIdentityCredential(options) //nolint:wrapcheck // Source names what it is about
}

func (a AKS) servicePrincipal(tenant, id string, options azcore.ClientOptions) (azcore.TokenCredential, error) {
	secret := cmp.Or(a.ClientSecret.Reveal(), os.Getenv("AZURE_CLIENT_SECRET"))
	file := cmp.Or(a.ClientCertificateFile, os.Getenv("AZURE_CLIENT_CERTIFICATE_PATH"))
	switch {
	case a.ClientCertificateFile == "" && secret != "":
		return azidentity.NewClientSecretCredential(tenant, id, secret, //nolint:wrapcheck // as above
			&azidentity.ClientSecretCredentialOptions{ClientOptions: options, DisableInstanceDiscovery: true})
	case file == "":
		return nil, setupErrorf("the service principal needs clientSecret (or AZURE_CLIENT_SECRET) or clientCertificateFile (or AZURE_CLIENT_CERTIFICATE_PATH): see %s",
			aksPage)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the file
	}
	certificates, key, err := azidentity.ParseCertificates(content, []byte(a.certificatePassword))
	if err != nil {
		return nil, setupErrorf("%s has no certificate with its RSA key in PEM or PKCS#12, or its password is another", file)
	}
	return azidentity.NewClientCertificateCredential(tenant, id, certificates, key, //nolint:wrapcheck // as above
		&azidentity.ClientCertificateCredentialOptions{ClientOptions: options, DisableInstanceDiscovery: true})
}

// authority returns the address of Entra ID.
func (a AKS) authority() (*url.URL, error) {
	text := cmp.Or(a.AuthorityHost, os.Getenv("AZURE_AUTHORITY_HOST"), publicEntra)
	authority, err := url.Parse(text)
	if err != nil || authority.Scheme != "https" || authority.Host == "" || authority.User != nil {
		return nil, setupErrorf("authorityHost (or AZURE_AUTHORITY_HOST) must be an https:// address of Entra ID, for example %s", publicEntra)
	}
	// Entra ID's answers name it as it is usually written, and hostTransport compares.
	authority.Host = hostName(strings.TrimSuffix(authority.Host, ":443"))
	return authority, nil
}

// hostTransport sends requests to one host only. Entra ID's answers name the address that issues tokens, and a wrong answer would send
// the credentials elsewhere.
type hostTransport struct {
	host string
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t hostTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host != t.host {
		return nil, fmt.Errorf("%s names another address for tokens: %.100q", t.host, r.URL.Host)
	}
	return t.next.RoundTrip(r)
}
