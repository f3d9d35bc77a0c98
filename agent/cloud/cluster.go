package cloud

import (
	"encoding/base64"
	"encoding/pem"
	"net/url"
	"strings"

	"github.com/vedette-io/vedette/internal/configfile"
)

// Providers of clusters.
const (
	providerNone = "none"
	providerEKS  = "eks"
	providerAKS  = "aks"
)

// How tokens are got if a kubeconfig runs a program of a cloud.
const (
	tokensNative  = "native"
	tokensProgram = "program"
)

// Cluster says how to reach a cluster of a cloud without a kubeconfig, and how to get tokens in either case.
type Cluster struct {
	// Cloud of a cluster without kubeconfig: `eks`, `gke` or `aks`; `none` if there is a kubeconfig. The agent gets tokens by the cloud's own
	// protocol. Tokens of gke are those of oAuthServiceAccount, or of the environment.
	Provider string `config:"provider" default:"none" enum:"none,eks,gke,aks"`
	// URL of the API server.
	Server string `config:"server"`
	// Certificate authority of the API server, in base64, as the clouds' command lines print it, or in PEM. Default: those of the system.
	CertificateAuthorityData string `config:"certificateAuthorityData"`
	// PEM file with the authority, in place of certificateAuthorityData.
	CertificateAuthorityFile string `config:"certificateAuthorityFile"`
	// Identity of AWS, with the provider eks.
	EKS EKS `config:"eks"`
	// Identity of Entra ID, with the provider aks.
	AKS AKS `config:"aks"`
	// Who gets the token if the kubeconfig runs aws, aws-iam-authenticator, gke-gcloud-auth-plugin or kubelogin (exec). `auto`: the
	// program, if it is installed, and otherwise the agent itself. `native`: the agent itself. `program`: the program.
	Tokens string `config:"tokens" default:"auto" enum:"auto,native,program"`
}

// HasProvider reports whether the cluster is reached without a kubeconfig.
func (c Cluster) HasProvider() bool {
	return c.Provider != "" && !strings.EqualFold(c.Provider, providerNone)
}

// Check adds problems that tags cannot express.
func (c Cluster) Check(to configfile.Checker) {
	if !c.HasProvider() {
		for _, key := range []string{"server", "certificateAuthorityData", "certificateAuthorityFile", "eks", "aks"} {
			if to.IsSet(key) {
				to.Problem(key, " has no effect without %q: set it to eks, gke or aks, or leave this out", to.Path("provider"))
			}
		}
		return
	}
	if u, err := url.Parse(c.Server); err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
		to.Problem("server", " must be the https:// address of the API server, got %.100q", c.Server)
	}
	if c.CertificateAuthorityFile != "" && c.CertificateAuthorityData != "" {
		to.Problem("certificateAuthorityFile", " must not be set together with %q: remove one of them", to.Path("certificateAuthorityData"))
	}
	if c.CertificateAuthorityData != "" && c.AuthorityData() == nil {
		to.Problem("certificateAuthorityData", " must be a certificate in base64 or PEM")
	}
	switch provider := strings.ToLower(c.Provider); {
	case provider == providerEKS && c.EKS.ClusterName == "":
		to.Problem("eks.clusterName", " must be the name of the cluster in EKS")
	case provider == providerAKS && c.AKS.ClientSecret.Reveal() != "" && c.AKS.ClientCertificateFile != "":
		to.Problem("aks.clientSecret", " must not be set together with %q: remove one of them", to.Path("aks.clientCertificateFile"))
	}
}

// AuthorityData returns the authority in PEM; nil if it is none.
func (c Cluster) AuthorityData() []byte {
	text := []byte(c.CertificateAuthorityData)
	if decoded, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(c.CertificateAuthorityData), "")); err == nil {
		text = decoded
	}
	if block, _ := pem.Decode(text); block == nil || block.Type != "CERTIFICATE" {
		return nil
	}
	return text
}

// Source returns the source of tokens of a cluster with a provider. google says whose tokens those of gke are.
func (c Cluster) Source(google Google) (*Source, error) {
	switch strings.ToLower(c.Provider) {
	case providerEKS:
		return c.EKS.source(), nil
	case providerAKS:
		aks := c.AKS
		aks.Login = strings.ToLower(aks.Login)
		return aks.source(), nil
	}
	return google.Source()
}

// RunsProgram reports whether the program of a kubeconfig gets the token, although the agent could try to get it itself.
func (c Cluster) RunsProgram(isInstalled bool) bool {
	tokens := strings.ToLower(c.Tokens)
	return tokens == tokensProgram || tokens != tokensNative && isInstalled
}
