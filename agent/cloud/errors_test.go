package cloud_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/vedette-io/vedette/agent/cloud"
	"github.com/vedette-io/vedette/agent/cloud/cloudtest"
	"github.com/vedette-io/vedette/internal/configfile"
)

// eachCloud returns a source of each cloud with what the pod has been given, and the host that issues its tokens.
func eachCloud(t *testing.T, s *cloudtest.Services) map[string]*cloud.Source {
	t.Helper()
	setenv(t, map[string]string{
		"AWS_ROLE_ARN": s.AWS.RoleARN, "AWS_REGION": "eu-west-1", "AWS_WEB_IDENTITY_TOKEN_FILE": cloudtest.WriteFile(t, "token", s.AWS.WebIdentityToken),
		"AZURE_CLIENT_ID": s.Entra.ClientID, "AZURE_TENANT_ID": s.Entra.Tenant, "AZURE_FEDERATED_TOKEN_FILE": cloudtest.WriteFile(t, "token", s.Entra.FederatedToken),
	})
	return map[string]*cloud.Source{
		cloudtest.HostSTS:    newSource(t, eks(cloud.EKS{}), cloud.Google{}),
		cloudtest.HostGoogle: newSource(t, cloud.Cluster{Provider: "gke"}, cloud.Google{KeyFile: s.Google.KeyFile(t)}),
		cloudtest.HostEntra:  newSource(t, cloud.Cluster{Provider: "aks", AKS: cloud.AKS{Login: "workloadidentity"}}, cloud.Google{}),
	}
}

// secretParts are parts of what is sent to the services, or issued.
var secretParts = []string{"secret", "signature", "eyJ", "ya29", "k8s-aws-v1", "temporary", "session-", "assertion=", "Token="}

// expectError checks that an error names cloud, service and what to do, in one short line, and has nothing of the credentials.
func expectError(t *testing.T, name string, err error, wants ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: got no error", name)
		return
	}
	text := err.Error()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%s: got error %q, want %q in it", name, text, want)
		}
	}
	for _, part := range secretParts {
		if strings.Contains(text, part) {
			t.Errorf("%s: got error %q, which has %q of the credentials", name, text, part)
		}
	}
	if len(text) > 1200 || !utf8.ValidString(text) || strings.ContainsAny(text, "\n\r\x00\x1b") {
		t.Errorf("%s: got error %q, want a short line of text", name, text)
	}
}

// TestBadAnswersOfTokenServices lets the token services of all clouds answer without a token.
func TestBadAnswersOfTokenServices(t *testing.T) {
	s := startServices(t)
	text := func(status int, contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	const jsonType = "application/json"
	// echo answers what it was sent, as proxies do.
	echo := func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			s.Entra.ServeHTTP(w, r)
			return
		}
		_ = r.ParseForm()
		w.Header().Set("Content-Type", jsonType)
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `{"error": "denied", "error_description": %q}`, "I do not like "+r.Form.Get("WebIdentityToken")+r.Form.Get("client_assertion")+r.Form.Get("assertion"))
	}
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"HTML":                       {text(200, "text/html", "<!DOCTYPE html><html><body>Sign in, secret</body></html>"), "answered 200 OK with an HTML page, as proxies and sign-in pages send it: check proxies"},
		"HTML with an error":         {text(403, "text/html", "<html>secret</html>"), "answered 403 Forbidden with an HTML page"},
		"a message":                  {text(403, jsonType, `{"error": "access_denied", "error_description": "the policy forbids it"}`), "answered 403 Forbidden, access_denied: the policy forbids it: see docs/cloud-"},
		"a message of STS":           {text(403, "text/xml", "<ErrorResponse><Error><Code>AccessDenied</Code><Message>not you</Message></Error></ErrorResponse>"), "answered 403 Forbidden, AccessDenied: not you: see docs/cloud-"},
		"a message that is too long": {text(400, jsonType, `{"error": "bad", "error_description": "`+strings.Repeat("x ", 100_000)+`"}`), "answered 400 Bad Request, bad: x x"},
		"a message with lines":       {text(400, jsonType, `{"error": "bad", "error_description": "a\r\nb\u001b[31mc\u0000"}`), "answered 400 Bad Request, bad: a b?[31mc?"},
		"a message that quotes":      {echo, "answered 403 Forbidden, denied: I do not like ***"},
		"bytes that are not text":    {text(500, "text/plain", "\xff\xfe secret"), "answered 500 Internal Server Error: the agent asks again"},
		"too many requests":          {text(429, jsonType, `{"error": {"status": "RESOURCE_EXHAUSTED", "message": "slow down"}}`), "answered 429 Too Many Requests, RESOURCE_EXHAUSTED: slow down: the agent asks again"},
		"nothing":                    {text(200, jsonType, ""), "see docs/cloud-"},
		"broken JSON":                {text(200, jsonType, `{"access_token": "secret-token-of-a-cloud`), "answered with 41 bytes that are not valid JSON"},
		"JSON of something else":     {text(200, jsonType, `{"message": "a secret message of another service"}`), "see docs/cloud-"},
		"text that is not JSON":      {text(200, "text/plain", "a secret message of another service"), "see docs/cloud-"},
		"too much":                   {text(200, jsonType, `{"access_token": "`+strings.Repeat("secret", 300_000)+`"}`), "answered with more than 1 MiB"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path+"x", http.StatusFound) },
			"redirects elsewhere (302 Found), as sign-in pages do and token services don't: check proxies"},
		"a hanging up": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "see docs/cloud-"},
	} {
		for host, source := range eachCloud(t, s) {
			s.Answer(host, tt.answer)
			before := s.Asked(host)
			_, err := source.Token(t.Context())
			expectError(t, name+" of "+host, err, source.String(), host, tt.want)
			if asked := s.Asked(host) - before; asked > 3 {
				t.Errorf("%s: %s was asked %d times", name, host, asked)
			}
			s.Answer(host, nil)
		}
	}
}

// TestUnusableTokens checks that what cannot be sent in a header is an error without the token.
func TestUnusableTokens(t *testing.T) {
	s := startServices(t)
	for name, tt := range map[string]struct{ token, want string }{
		"lines":                    {`secret\r\nX-Remote-User: admin`, "has a character at byte 6 that cannot be sent in a header"},
		"bytes that are not UTF-8": {"secret\\ufffd", "has a character at byte 6"},
		"a space":                  {"secret secret", "has a character at byte 6"},
		"no token":                 {"", "see docs/cloud-"},
		"a long token":             {strings.Repeat("secret", 20_000), "the token has 120000 bytes"},
	} {
		for host, source := range eachCloud(t, s) {
			if host == cloudtest.HostSTS {
				continue // the agent makes the token itself
			}
			body := fmt.Sprintf(`{"access_token": "%s", "expires_in": 3600, "token_type": "Bearer"}`, tt.token)
			s.Answer(host, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if strings.Contains(r.URL.Path, "openid-configuration") {
					body := `{"issuer": "https://%[1]s/%[2]s/v2.0", "token_endpoint": "https://%[1]s/%[2]s/oauth2/v2.0/token", "authorization_endpoint": "https://%[1]s/"}`
					fmt.Fprintf(w, body, host, s.Entra.Tenant)
					return
				}
				fmt.Fprint(w, body)
			})
			_, err := source.Token(t.Context())
			expectError(t, name+" of "+host, err, tt.want)
			s.Answer(host, nil)
		}
	}
}

// TestBadSetup checks the errors of identities that are missing, or that a cloud does not accept.
func TestBadSetup(t *testing.T) {
	s := startServices(t)
	s.Answer(cloudtest.HostMetadata, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no role", http.StatusNotFound) })
	aks := func(a cloud.AKS) cloud.Cluster { return cloud.Cluster{Provider: "aks", AKS: a} }
	token := cloudtest.WriteFile(t, "token", "a-secret-that-nobody-knows")
	fifo := t.TempDir() + "/fifo"
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	entra := map[string]string{"AZURE_CLIENT_ID": s.Entra.ClientID, "AZURE_TENANT_ID": s.Entra.Tenant}
	for name, tt := range map[string]struct {
		cluster cloud.Cluster
		env     map[string]string
		wants   []string
	}{
		"no region": {eks(cloud.EKS{}), nil, []string{"EKS cluster prod: the region is unknown: set region, or AWS_REGION"}},
		"no identity of AWS": {eks(cloud.EKS{Region: "eu-west-1"}), nil,
			[]string{"EKS cluster prod in eu-west-1: neither IRSA (AWS_WEB_IDENTITY_TOKEN_FILE), nor EKS Pod Identity", "and the node gives it none", "docs/cloud-eks.md"}},
		"a profile that does not exist": {eks(cloud.EKS{Profile: "nobody"}), nil, []string{"failed to get shared config profile, nobody: see docs/cloud-eks.md"}},
		"a token that has expired": {eks(cloud.EKS{Region: "eu-west-1"}), map[string]string{"AWS_ROLE_ARN": s.AWS.RoleARN, "AWS_WEB_IDENTITY_TOKEN_FILE": token},
			[]string{"AWS (sts.eu-west-1.amazonaws.com) answered 400 Bad Request, InvalidIdentityToken: Couldn't verify ***: see docs/cloud-eks.md"}},
		"another role": {eks(cloud.EKS{Region: "eu-west-1"}), map[string]string{"AWS_ROLE_ARN": "arn:aws:iam::111122223333:role/other",
			"AWS_WEB_IDENTITY_TOKEN_FILE": cloudtest.WriteFile(t, "token", s.AWS.WebIdentityToken)},
			[]string{"answered 403 Forbidden, AccessDenied: Not authorized to perform sts:AssumeRoleWithWebIdentity: see docs/cloud-eks.md"}},
		"a token that is gone": {eks(cloud.EKS{Region: "eu-west-1"}), map[string]string{"AWS_ROLE_ARN": s.AWS.RoleARN, "AWS_WEB_IDENTITY_TOKEN_FILE": "/no/such/token"},
			[]string{"/no/such/token"}},
		"no association of Pod Identity": {eks(cloud.EKS{Region: "eu-west-1"}), map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.23/v1/credentials",
			"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": token},
			[]string{"AWS (169.254.170.23) answered 403 Forbidden, AccessDeniedException: no association for the service account; got ***"}},
		"no identity of Google": {cloud.Cluster{Provider: "gke"}, nil,
			[]string{"GKE cluster: neither GOOGLE_APPLICATION_CREDENTIALS nor the metadata server gives the agent an identity of Google", "docs/cloud-gke.md"}},
		"a file of Google that is gone": {cloud.Cluster{Provider: "gke"}, map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": "/no/such/file"}, []string{"/no/such/file"}},
		"no tenant and no client":       {aks(cloud.AKS{Login: "workloadidentity"}), nil, []string{"tenantId (or AZURE_TENANT_ID) and clientId (or AZURE_CLIENT_ID) must be set"}},
		"no workload identity":          {aks(cloud.AKS{Login: "workloadidentity"}), entra, []string{"AZURE_FEDERATED_TOKEN_FILE is not set: label the agent's pods"}},
		"another tenant": {aks(cloud.AKS{Login: "workloadidentity", TenantID: "someone"}), map[string]string{"AZURE_CLIENT_ID": s.Entra.ClientID, "AZURE_FEDERATED_TOKEN_FILE": token},
			[]string{"Entra ID (login.microsoftonline.com) answered 400 Bad Request, invalid_tenant: AADSTS90002: Tenant not found: see docs/cloud-aks.md"}},
		"another federated token": {aks(cloud.AKS{Login: "workloadidentity"}), map[string]string{"AZURE_CLIENT_ID": s.Entra.ClientID, "AZURE_TENANT_ID": s.Entra.Tenant,
			"AZURE_FEDERATED_TOKEN_FILE": token}, []string{"answered 401 Unauthorized, invalid_client: AADSTS700016: Application was not found; got"}},
		"no managed identity": {aks(cloud.AKS{Login: "msi"}), nil, []string{"AKS cluster, by msi: the metadata service of Azure gives the agent no managed identity"}},
		"another secret": {aks(cloud.AKS{Login: "spn", ClientSecret: configfile.NewSecret("a-secret-that-is-wrong")}), entra,
			[]string{"AADSTS700016"}},
		"no credentials of the service principal": {aks(cloud.AKS{Login: "spn"}), entra, []string{"clientCertificateFile (or AZURE_CLIENT_CERTIFICATE_PATH)"}},
		"a certificate that is none":              {aks(cloud.AKS{Login: "spn", ClientCertificateFile: token}), entra, []string{"has no certificate with its RSA key"}},
		"an address without TLS":                  {aks(cloud.AKS{Login: "spn", AuthorityHost: "http://entra"}), entra, []string{"must be an https:// address of Entra ID"}},
	} {
		t.Run(name, func(t *testing.T) {
			setenv(t, tt.env)
			_, err := newSource(t, tt.cluster, cloud.Google{}).Token(t.Context())
			expectError(t, name, err, tt.wants...)
		})
	}
	t.Run("a service that is slow", func(t *testing.T) {
		for host, source := range eachCloud(t, s) {
			ended := make(chan struct{})
			s.Answer(host, func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // only then does the server notice that the client is gone
				<-r.Context().Done()
				close(ended)
			})
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // in which the request arrives
			_, err := source.Token(ctx)
			cancel()
			expectError(t, host, err, host, "did not answer within 30s: check firewalls, proxies and NetworkPolicies on the way")
			<-ended // nothing goes on
			s.Answer(host, nil)
		}
	})
	t.Run("a pipe in place of a file", func(t *testing.T) {
		setenv(t, map[string]string{"AWS_ROLE_ARN": s.AWS.RoleARN, "AWS_WEB_IDENTITY_TOKEN_FILE": fifo})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := newSource(t, eks(cloud.EKS{Region: "eu-west-1"}), cloud.Google{}).Token(ctx)
		expectError(t, "a pipe", err, "did not answer")
	})
}

// TestEntraCannotSendCredentialsElsewhere checks that an answer of Entra ID does not decide who gets the credentials.
func TestEntraCannotSendCredentialsElsewhere(t *testing.T) {
	s := startServices(t)
	s.Entra.TokenEndpoint = "https://sts.googleapis.com/v1/token"
	_, err := eachCloud(t, s)[cloudtest.HostEntra].Token(t.Context())
	if err == nil || s.Asked("sts.googleapis.com") > 0 {
		t.Errorf("got error %v, and %d requests to another host", err, s.Asked("sts.googleapis.com"))
	}
}

// TestMetadataServerMustIdentifyItself checks that a token is rejected if another server has the address of Google's metadata server.
func TestMetadataServerMustIdentifyItself(t *testing.T) {
	s := startServices(t)
	s.Answer(cloudtest.HostMetadata, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"access_token": "t", "expires_in": 3600}`)
	})
	_, err := newSource(t, cloud.Cluster{Provider: "gke"}, cloud.Google{}).Token(t.Context())
	expectError(t, "another server", err, "is not Google's metadata server")
}

// TestWrongClockIsNamed checks that an error says how far the clocks of agent and service are apart.
func TestWrongClockIsNamed(t *testing.T) {
	s := startServices(t)
	for ahead, want := range map[time.Duration]string{
		-time.Hour: "set this machine's clock, which is 1h0m0s behind that of the service", time.Hour: "1h0m0s ahead of that of the service", 0: "see docs/",
	} {
		for host, source := range eachCloud(t, s) {
			s.Answer(host, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Date", time.Now().Add(-ahead).UTC().Format(http.TimeFormat))
				w.WriteHeader(http.StatusForbidden)
				fmt.Fprint(w, `{"error": "invalid_grant", "error_description": "Signature expired"}`)
			})
			_, err := source.Token(t.Context())
			expectError(t, host, err, want)
			s.Answer(host, nil)
		}
	}
}
