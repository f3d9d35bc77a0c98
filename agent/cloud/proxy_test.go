package cloud

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMetadataServicesAreAskedWithoutProxy checks that a proxy of the environment is used for services of the internet, and not for those of
// this machine: a proxy would send its own machine's tokens, and see ours.
func TestMetadataServicesAreAskedWithoutProxy(t *testing.T) {
	const variable = "TEST_PROXY_OF_SERVICES"
	if os.Getenv(variable) == "" { // net/http reads the environment once
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$") //nolint:gosec // this program
		cmd.Env = append(os.Environ(), variable+"=1", "HTTP_PROXY=http://proxy:3128", "HTTPS_PROXY=http://proxy:3128", "NO_PROXY=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	for address, want := range map[string]bool{
		"https://sts.eu-west-1.amazonaws.com": true, "https://login.microsoftonline.com": true, "https://10.0.0.1": true,
		"http://169.254.169.254": false, "http://169.254.170.23": false, "http://[fd00:ec2::23]": false, "http://[fd00:ec2::254]": false,
		"http://metadata.google.internal": false, "http://[fe80::1]": false, "http://Metadata.Google.Internal.": false, "http://LOCALHOST.": false,
		"http://[::ffff:169.254.169.254]": false, "http://metadata.google.internal.example.com": true,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if proxy, err := proxyOf(r); (proxy != nil) != want || err != nil {
			t.Errorf("%s: got the proxy %v, %v, want one: %v", address, proxy, err, want)
		}
	}
}

// TestProxiesThatAreAwayAreNamed checks that an error says of the proxy what is wrong with it, and not of the service, and keeps its password.
func TestProxiesThatAreAwayAreNamed(t *testing.T) {
	const variable = "TEST_PROXY_THAT_IS_AWAY"
	if os.Getenv(variable) == "" { // net/http reads the environment once
		for _, proxy := range []string{"http://user:secret@127.0.0.1:1", "http://user:secret@proxy.invalid:3128"} {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$") //nolint:gosec // this program
			cmd.Env = append(os.Environ(), variable+"=1", "HTTPS_PROXY="+proxy, "https_proxy="+proxy, "NO_PROXY=", "no_proxy=")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s", proxy, err, out)
			}
		}
		return
	}
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	source := AKS{Login: loginWI, TenantID: "a", ClientID: "b", federatedTokenFile: token}.source()
	_, err := source.Token(t.Context())
	if err == nil || !strings.Contains(err.Error(), "the proxy on the way to Entra ID (login.microsoftonline.com) cannot be reached: check HTTPS_PROXY") ||
		strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v, want an error about the proxy", err)
	}
}
