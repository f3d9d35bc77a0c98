package engines

import "testing"

func TestEmulatorHostGetsAScheme(t *testing.T) {
	for host, want := range map[string]string{"": "", "localhost:4443": "http://localhost:4443", "https://gcs:4443": "https://gcs:4443"} {
		if got := emulatorURL(host); got != want {
			t.Errorf("%s: got %s, want %s", host, got, want)
		}
	}
}
