package cloud

import (
	"net/http"
	"os"
	"os/exec"
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
