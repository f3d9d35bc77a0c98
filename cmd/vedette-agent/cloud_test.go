//go:build unix

package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/agent/cloud/cloudtest"
	"github.com/vedette-io/vedette/test/controlplane"
	"github.com/vedette-io/vedette/test/programs"
)

// TestProgramConnectsToClustersOfClouds runs the program as in a pod: with the workload identities of two clouds, the authorities in a file,
// and a proxy to the internet, and without any other program. It connects to clusters, and says why it cannot connect to one.
func TestProgramConnectsToClustersOfClouds(t *testing.T) {
	t.Parallel()
	s := cloudtest.Start(t)
	p := controlplane.New(t, controlplane.Options{APIServerFlags: []string{"--authentication-token-webhook-version=v1",
		"--authentication-token-webhook-config-file=" + s.Webhook(t, "prod", s.AWS.RoleARN, s.Entra.ClientID)}})
	dir := t.TempDir()
	if err := programs.Build(t.Context(), dir, "vedette-agent"); err != nil {
		t.Fatal(err)
	}
	kubeconfig := cloudtest.WriteFile(t, "eks.yml", fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}]
users:
- name: u
  user:
    exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: aws, args: [--region, eu-west-1, eks, get-token, --cluster-name, prod, --output, json]}
`, p.URL, p.CA()))
	config := cloudtest.WriteFile(t, "agent.yml", fmt.Sprintf(`kubernetes:
  accounts:
    - {name: eks, kinds: [pods], kubeconfigFile: %[1]q}
    - {name: aks, kinds: [pods], cloud: {provider: aks, server: %[2]q, certificateAuthorityFile: %[3]q}}
    - {name: other, kinds: [pods], cloud: {provider: eks, server: %[2]q, certificateAuthorityFile: %[3]q, eks: {clusterName: prod, region: eu-west-1, roleArn: "arn:aws:iam::1:role/none"}}}
`, kubeconfig, p.URL, p.CA()))
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "vedette-agent"), "check", "--connect", "--config", config)
	cmd.Env = []string{"HOME=" + dir, "PATH=" + dir, "SSL_CERT_FILE=" + s.CAFile(), "HTTPS_PROXY=" + s.Proxy(t), "NO_PROXY=127.0.0.1",
		"AWS_ROLE_ARN=" + s.AWS.RoleARN, "AWS_WEB_IDENTITY_TOKEN_FILE=" + cloudtest.WriteFile(t, "token", s.AWS.WebIdentityToken),
		"AZURE_CLIENT_ID=" + s.Entra.ClientID, "AZURE_TENANT_ID=" + s.Entra.Tenant,
		"AZURE_FEDERATED_TOKEN_FILE=" + cloudtest.WriteFile(t, "token", s.Entra.FederatedToken)}
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Error("got no error, although there is no server")
	}
	for _, want := range []string{
		"note: account eks: credentials by EKS cluster prod in eu-west-1: the agent gets tokens itself",
		"note: account aks: credentials by AKS cluster, by workloadidentity: the agent gets tokens itself",
		"ok      account eks rights", "ok      account aks rights",
		"failed  account other: identify the cluster: there are no credentials for " + p.URL + ": getting credentials: EKS cluster prod in eu-west-1: " +
			"AWS (sts.eu-west-1.amazonaws.com) answered 403 Forbidden, AccessDenied: Not authorized to perform sts:AssumeRole: see docs/cloud-eks.md",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("got %s\nwant %q in it", out, want)
		}
	}
	if strings.Contains(string(out), "secret") {
		t.Errorf("the output has secrets: %s", out)
	}
}
