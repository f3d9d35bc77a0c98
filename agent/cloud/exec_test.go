package cloud_test

import (
	"strings"
	"testing"

	"github.com/vedette-io/vedette/agent/cloud"
)

// TestProgramsAreRecognized checks which programs of kubeconfigs the agent replaces, and that arguments and variables that it does not know
// are errors without their values.
func TestProgramsAreRecognized(t *testing.T) {
	for _, tt := range []struct {
		name, command, args string
		env                 map[string]string
		want                string // the source, or the error; empty for neither
	}{
		{"another program", "my-plugin", "token", nil, ""},
		{"another command of aws", "aws", "sts get-caller-identity", nil, ""},
		{"kubectl oidc-login", "kubectl", "oidc-login get-token --oidc-issuer-url=https://i", nil, ""},
		{"aws", "aws", "eks get-token --cluster-name prod --region eu-west-1", nil, "EKS cluster prod in eu-west-1"},
		{"aws of an Outpost", "/opt/aws.exe", "--region eu-west-1 eks get-token --cluster-id 1234", nil, "EKS cluster 1234 in eu-west-1"},
		{"aws with a role", "aws", "eks get-token --cluster-name prod --role-arn arn:aws:iam::1:role/r", map[string]string{"AWS_PROFILE": "p", "AWS_REGION": "r"}, "EKS cluster prod in r"},
		{"aws with an argument that is not known", "aws", "eks get-token --cluster-name prod --endpoint-url https://secret", nil,
			"the agent cannot get the token itself as aws does (unknown argument --endpoint-url)"},
		{"aws with a variable that is not known", "aws", "eks get-token --cluster-name prod", map[string]string{"AWS_CA_BUNDLE": "/secret"},
			`the agent cannot get the token itself as aws does (unknown variable "AWS_CA_BUNDLE")`},
		{"aws with the old endpoint", "aws", "eks get-token --cluster-name prod", map[string]string{"AWS_STS_REGIONAL_ENDPOINTS": "legacy"},
			`(unknown variable "AWS_STS_REGIONAL_ENDPOINTS")`},
		{"aws with a variable that is empty", "aws", "eks get-token --cluster-name prod", map[string]string{"AWS_CA_BUNDLE": ""}, "EKS cluster prod"},
		{"aws without a cluster", "aws", "eks get-token --region r", nil, "(no --cluster-name)"},
		{"aws with words", "aws", "eks get-token secret --cluster-name prod", nil, `(unknown arguments beside "eks get-token")`},
		{"aws with another output", "aws", "eks get-token --cluster-name prod --output yaml", nil, "(an --output other than json)"},
		{"aws with half an argument", "aws", "eks get-token --cluster-name", nil, "(no value of --cluster-name)"},
		{"aws-iam-authenticator", "aws-iam-authenticator", "token -i prod -r arn:aws:iam::1:role/r --session-name s --external-id x --region r", nil, "EKS cluster prod in r"},
		{"aws-iam-authenticator with an argument that is not known", "aws-iam-authenticator", "token -i prod --forward-session-name", nil, "(unknown argument --forward-session-name)"},
		{"aws-iam-authenticator with a letter that is not known", "aws-iam-authenticator", "token -i prod -xsecret", nil, "(unknown argument -x)"},
		{"gke-gcloud-auth-plugin", "gke-gcloud-auth-plugin", "", nil, "GKE cluster"},
		{"gke-gcloud-auth-plugin with the environment", "/usr/lib/google-cloud-sdk/bin/gke-gcloud-auth-plugin", "--use_application_default_credentials", nil, "GKE cluster"},
		{"gke-gcloud-auth-plugin with an argument that is not known", "gke-gcloud-auth-plugin", "--impersonate_service_account=secret", nil, "(unknown argument --impersonate_service_account)"},
		{"gke-gcloud-auth-plugin with a variable that is not known", "gke-gcloud-auth-plugin", "", map[string]string{"CLOUDSDK_ACTIVE_CONFIG_NAME": "secret"}, `(unknown variable "CLOUDSDK_ACTIVE_CONFIG_NAME")`},
		{"kubelogin", "kubelogin", "get-token -l msi --server-id s --client-id c", nil, "AKS cluster, by msi"},
		{"kubelogin with variables", "kubelogin", "get-token --server-id s", map[string]string{"AAD_LOGIN_METHOD": "spn", "AZURE_CLIENT_SECRET": "secret"}, "AKS cluster, by spn"},
		{"kubelogin of a person", "kubelogin", "get-token --login devicecode --server-id s --client-id c --tenant-id t --environment AzurePublicCloud", nil,
			"(--login devicecode, which needs a person or another program: use workloadidentity, msi or spn, see docs/cloud-aks.md)"},
		{"kubelogin as az writes it", "kubelogin", "get-token --environment AzurePublicCloud --server-id s --client-id c --tenant-id t", nil, "(--login devicecode"},
		{"kubelogin of another cloud", "kubelogin", "get-token -l msi --server-id s --environment AzureStackCloud", nil, `(unknown --environment "AzureStackCloud")`},
		{"kubelogin with an argument that is not known", "kubelogin", "get-token -l spn --server-id s --pop-enabled", nil, "(unknown argument --pop-enabled)"},
		{"kubelogin with two problems", "kubelogin", "get-token -l msi --server-id s --legacy", map[string]string{"X": "secret"},
			`(unknown argument --legacy, unknown variable "X")`},
	} {
		source, err := cloud.FromExec(cloud.Exec{Command: tt.command, Args: strings.Fields(tt.args), Env: tt.env})
		got := ""
		switch {
		case err != nil:
			got = err.Error()
		case source != nil:
			got = source.String()
		}
		if isError := strings.Contains(tt.want, "("); isError != (err != nil) || !strings.Contains(got, tt.want) || tt.want == "" && got != "" || !isError && got != tt.want && err == nil ||
			err != nil && strings.Contains(got, "secret") {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestWhoGetsTokens checks when the program of a kubeconfig runs.
func TestWhoGetsTokens(t *testing.T) {
	for _, tt := range []struct {
		tokens      string
		isInstalled bool
		want        bool
	}{
		{"", true, true}, {"", false, false}, {"auto", true, true}, {"auto", false, false},
		{"native", true, false}, {"Native", false, false}, {"program", true, true}, {"program", false, true},
	} {
		if got := (cloud.Cluster{Tokens: tt.tokens}).RunsProgram(tt.isInstalled); got != tt.want {
			t.Errorf("%q, installed %v: got %v, want %v", tt.tokens, tt.isInstalled, got, tt.want)
		}
	}
}
