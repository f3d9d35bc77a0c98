package configfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// secretOptions resolves encrypted:NAME to secret-NAME, and encryptedFile:NAME to /tmp/NAME. The name
// "bad" is an error.
func secretOptions(asked *[]string) (o Options, secrets func(string) (string, error)) {
	o = sampleOptions
	o.Env = func(name string) (string, bool) {
		value, ok := map[string]string{"T_NAME": "encrypted:from-env", "REF": "encrypted:ref"}[name]
		return value, ok
	}
	return o, func(reference string) (string, error) {
		*asked = append(*asked, reference)
		name, isValue := strings.CutPrefix(reference, "encrypted:")
		switch {
		case name == "bad":
			return "", errors.New(reference + ": there is no such secret")
		case isValue:
			return "secret-" + name, nil
		}
		return "/tmp/" + strings.TrimPrefix(reference, "encryptedFile:"), nil
	}
}

const secretFile = `
level: encrypted:level
words: [plain, "encrypted:word"]
labels: {a: "encrypted:label", b: "${labels.a}", c: "db://u:${REF}@h/?p=${labels.a}", d: "${labels.c}"}
server: {password: "encrypted:password", key: "encryptedFile:key", port: 1}
entries:
- {name: "encrypted:bad"}
- {name: "encrypted:entry", tryTimes: 4}
future.token: encrypted:unused
other: {x: "encrypted:unused"}
`

// TestReferencesCountInEveryValue checks that references count in every kind of value, except those
// without an effect.
func TestReferencesCountInEveryValue(t *testing.T) {
	var asked []string
	var s sample
	o, secrets := secretOptions(&asked)
	report := ReadData("s.yml", []byte(secretFile), o, &s).Decode(&s, secrets)
	got := fmt.Sprintf("%s %s %q %q %s %s %q", s.Name, s.Level, s.Words, s.Labels, s.Server.Password.Reveal(), s.Server.KeyFile, s.Entries[1].Name)
	want := `secret-from-env secret-level ["plain" "secret-word"] map["a":"secret-label" "b":"secret-label" "c":"db://u:secret-ref@h/?p=secret-label"` +
		` "d":"db://u:secret-ref@h/?p=secret-label"] secret-password /tmp/key "secret-entry"`
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if slices.Contains(asked, "encrypted:unused") {
		t.Error("a key without an effect was resolved")
	}
	if len(report.Problems) != 1 || report.Problems[0].Error() != `s.yml:7:10: "entries[0].name": encrypted:bad: there is no such secret` {
		t.Errorf("got %v, want one problem", report.Problems)
	}
	if printed := fmt.Sprint(Effective(&s, report)); strings.Contains(printed, "secret-") || !strings.Contains(printed, "server.keyFile = /tmp/key") {
		t.Errorf("the settings contain secrets: %s", printed)
	}
}

// TestMessagesHideSecrets checks that neither wrong types nor later checks quote a secret.
func TestMessagesHideSecrets(t *testing.T) {
	for _, file := range []string{"server.port: encrypted:port", "numbers: [1, 'encrypted:port']", "numbers: encrypted:port", "enabled: encrypted:port",
		"size: encrypted:port", "server.port: 1${REF}", "labels.x: encrypted:port\nserver.port: ${labels.x}"} {
		var asked []string
		var s sample
		o, secrets := secretOptions(&asked)
		report := ReadData("s.yml", []byte(file), o, &s).Decode(&s, secrets)
		report.Add(Position{}, "name", "%q is not %q", "server.port", "secret-port of secret-ref")
		text := report.Err().Error()
		if len(report.Problems) != 2 || strings.Contains(text, "secret-port") && strings.Contains(text, "secret-ref") {
			t.Errorf("%s: got %v", file, text)
		}
		for _, reference := range asked {
			if value := "secret-" + strings.TrimPrefix(reference, "encrypted:"); strings.Contains(text, value) {
				t.Errorf("%s: %s contains %s", file, text, value)
			}
		}
	}
}

func TestASecretIsNotResolvedAgain(t *testing.T) {
	for _, file := range []string{"name: encrypted:x", "labels.x: encrypted:x\nname: ${labels.x}"} {
		secrets := func(string) (string, error) { return "encrypted:hunter2", nil }
		var s sample
		if err := ReadData("s.yml", []byte(file), sampleOptions, &s).Decode(&s, secrets).Err(); err != nil || s.Name != "encrypted:hunter2" {
			t.Errorf("got %q, %v", s.Name, err)
		}
	}
}
