//go:build unix

package cloud_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/cloud"
	"github.com/vedette-io/vedette/agent/cloud/cloudtest"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/test/controlplane"
)

// TestAPIServerAcceptsTokens connects to an API server that asks the token services whose tokens are, with kubeconfigs as the clouds'
// command lines write them, whose programs are not installed, and without kubeconfigs.
func TestAPIServerAcceptsTokens(t *testing.T) {
	s := cloudtest.Start(t)
	cloud.UseServices(t, s.Transport())
	p := controlplane.New(t, controlplane.Options{APIServerFlags: []string{"--authentication-token-webhook-version=v1",
		"--authentication-token-webhook-cache-ttl=0s",
		"--authentication-token-webhook-config-file=" + s.Webhook(t, "prod", s.AWS.RoleARN, s.Google.Email, s.Entra.ClientID)}})
	ca, err := os.ReadFile(p.CA())
	if err != nil {
		t.Fatal(err)
	}
	removeIdentities(t)
	authority := base64.StdEncoding.EncodeToString(ca)
	setenv(t, map[string]string{"PATH": t.TempDir(), "AWS_ROLE_ARN": s.AWS.RoleARN, "AWS_WEB_IDENTITY_TOKEN_FILE": cloudtest.WriteFile(t, "token", s.AWS.WebIdentityToken),
		"AZURE_CLIENT_ID": s.Entra.ClientID, "AZURE_TENANT_ID": s.Entra.Tenant, "AZURE_FEDERATED_TOKEN_FILE": cloudtest.WriteFile(t, "token", s.Entra.FederatedToken)})
	kubeconfig := func(command, env string, args ...string) kube.Access {
		return kube.Access{KubeconfigContents: fmt.Appendf(nil, "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\n"+
			"clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}]\nusers:\n- name: u\n  user:\n    exec:\n"+
			"      apiVersion: client.authentication.k8s.io/v1beta1\n      command: %s\n      args: [%s]\n      env: [%s]\n      installHint: Install it\n"+
			"      interactiveMode: IfAvailable\n      provideClusterInfo: true\n", p.URL, authority, command, strings.Join(args, ", "), env)}
	}
	cluster := func(c cloud.Cluster) kube.Access {
		c.Server, c.CertificateAuthorityData = p.URL, authority
		return kube.Access{Cloud: c}
	}
	for _, tt := range []struct {
		name   string
		access kube.Access
		issuer string
	}{
		{"aws", kubeconfig("aws", "", "--region", "eu-west-1", "eks", "get-token", "--cluster-name", "prod", "--output", "json"), "EKS cluster prod in eu-west-1"},
		{"aws by a path, with a profile in the environment", kubeconfig("/usr/local/bin/aws",
			"{name: AWS_ACCESS_KEY_ID, value: "+s.AWS.AccessKeyID+"}, {name: AWS_SECRET_ACCESS_KEY, value: "+s.AWS.SecretAccessKey+"}, {name: AWS_STS_REGIONAL_ENDPOINTS, value: regional}",
			"eks", "get-token", "--region=eu-west-1", "--cluster-name=prod"), "EKS cluster prod in eu-west-1"},
		{"aws-iam-authenticator", kubeconfig("aws-iam-authenticator", "{name: AWS_REGION, value: eu-west-1}", "token", "-i", "prod"), "EKS cluster prod in eu-west-1"},
		{"gke-gcloud-auth-plugin", kubeconfig("gke-gcloud-auth-plugin", ""), "GKE cluster"},
		{"kubelogin", kubeconfig("kubelogin", "", "get-token", "--login", "workloadidentity", "--environment", "AzurePublicCloud", "--server-id",
			s.Entra.ServerID), "AKS cluster, by workloadidentity"},
		{"EKS without kubeconfig", cluster(cloud.Cluster{Provider: "eks", EKS: cloud.EKS{ClusterName: "prod", Region: "eu-west-1"}}), "EKS cluster prod in eu-west-1"},
		{"GKE without kubeconfig", cluster(cloud.Cluster{Provider: "gke"}), "GKE cluster"},
		{"AKS without kubeconfig", cluster(cloud.Cluster{Provider: "aks", AKS: cloud.AKS{Login: "workloadidentity"}}), "AKS cluster, by workloadidentity"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := kube.Connect(tt.access, kube.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if id, _, err := c.Identify(t.Context()); err != nil || id.UID == "" {
				t.Errorf("got %+v, %v, want the uid of kube-system", id, err)
			}
			if got, want := c.Issuer(), tt.issuer+": the agent gets tokens itself"; got != want {
				t.Errorf("got the issuer %q, want %q", got, want)
			}
		})
	}
	t.Run("another cluster", func(t *testing.T) {
		c, err := kube.Connect(cluster(cloud.Cluster{Provider: "eks", EKS: cloud.EKS{ClusterName: "staging", Region: "eu-west-1"}}), kube.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _, err = c.Identify(t.Context())
		if vedette.KindOf(err) != vedette.Denied {
			t.Errorf("got a %q error, want %q", vedette.KindOf(err), vedette.Denied)
		}
		expectError(t, "another cluster", err, "rejected the credentials", "the cluster has no access entry for this identity of AWS, or another name or region: see docs/cloud-eks.md")
	})
	t.Run("an account that gets no token harms no other", func(t *testing.T) {
		s.Answer(cloudtest.HostSTS, nil)
		bad, err := kube.Connect(cluster(cloud.Cluster{Provider: "eks", EKS: cloud.EKS{ClusterName: "prod", Region: "eu-west-1", RoleARN: "arn:aws:iam::1:role/none"}}), kube.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer bad.Close()
		_, _, err = bad.Identify(t.Context())
		expectError(t, "a role", err, "there are no credentials for "+p.URL, "EKS cluster prod in eu-west-1: AWS (sts.eu-west-1.amazonaws.com) answered 403 Forbidden, AccessDenied")
		good, err := kube.Connect(cluster(cloud.Cluster{Provider: "gke"}), kube.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer good.Close()
		if _, _, err := good.Identify(t.Context()); err != nil {
			t.Errorf("the other account: %v", err)
		}
	})
}
