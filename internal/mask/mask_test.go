package mask_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/mask"
)

func secretManifest(t testing.TB, password any) []byte {
	t.Helper()
	return []byte(encode(t, map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "db", "labels": map[string]string{"app": "shop"}},
		"type": "Opaque", "stringData": map[string]any{"password": password}}))
}

func encode(t testing.TB, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestValuesAreMaskedInAllForms masks values that are quoted in all forms.
func TestValuesAreMaskedInAllForms(t *testing.T) {
	const special = "p\"a\\s's<é>\n&w=?"
	multi := "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG\n  9w0BAQEFAASC  \n-----END KEY-----\n"
	docker := `{"auths":{"r.example.com":{"username":"bot-user","auth":"` + base64.StdEncoding.EncodeToString([]byte("bot-user:hunter22")) + `"}}}`
	for _, tt := range []struct {
		name       string
		value      any
		text, want string
	}{
		{"verbatim", "hunter2", "it is hunter2!", "it is ***!"},
		{"three bytes", "abc", "it is abc, or dabcd", "it is ***, or d***d"},
		{"two bytes, in quotes", "ab", "about \"ab\", 'ab', `ab` or {\"a\":\\\"ab\\\"}", "about ***, ***, *** or {\"a\":***}"},
		{"one byte, in quotes", "7", `7 of "7"`, `7 of ***`},
		{"twice, side by side", "hunter2", "hunter2hunter2", "***"},
		{"overlapping", "abab", "xababab", "x***"},
		{"base64", "hunter2", "aHVudGVyMg== or aHVudGVyMg", "*** or ***"},
		{"base64, decoded", "aHVudGVyMg==", "it is hunter2", "it is ***"},
		{"base64 in lines", "aHVu\ndGVy\nMg==\n", "it is hunter2", "it is ***"},
		{"base64 without padding", "aHVudGVyMg", "it is hunter2", "it is ***"},
		{"Go-quoted", special, fmt.Sprintf("got %q.", special), `got "***".`},
		{"Go-quoted twice", special, fmt.Sprintf("%q", fmt.Sprintf("got %q.", special)), `"got \"***\"."`},
		{"JSON", special, `{"password":` + encode(t, special) + `}`, `{"password":"***"}`},
		{"an environment variable", "A=1\nPASSWORD='hunter2'\n", "it is hunter2", "it is ***"},
		{"in ASCII", special, fmt.Sprintf("got %+q.", special), `got "***".`},
		{"in a URL", special, "?a=" + url.QueryEscape(special) + "&b=" + url.PathEscape(special), "?a=***&b=***"},
		{"hexadecimal", "hunter2", fmt.Sprintf("%x %X", "hunter2", "hunter2"), "*** ***"},
		{"bytes", "hunter2", fmt.Sprint(map[string][]byte{"p": []byte("hunter2")}), "map[p:[***]]"},
		{"bytes in Go", "hunter2", fmt.Sprintf("%#v", []byte("hunter2")), "[]byte{***}"},
		{"trimmed", "  hunter2 \n", "it is hunter2.", "it is ***."},
		{"a line", multi, "line 2: MIIEvQIBADANBgkqhkiG is broken", "line 2: *** is broken"},
		{"a trimmed line", multi, "9w0BAQEFAASC?", "***?"},
		{"a piece", "correct-horse-battery-staple", "…-horse-battery… is too long", "…***… is too long"},
		{"a piece that is short", "correct-horse-battery-staple", "horse-batte is a word", "horse-batte is a word"},
		{"within JSON", docker, "the user bot-user has hunter22", "the user *** has hunter22"},
		{"within JSON, decoded", docker, "bot-user:hunter22", "***"},
		{"a whole number", 1234567, "got int64 1234567", "got int64 ***"},
		{"a fraction", 3.25, "got 3.25", "got ***"},
		{"a large number", json.Number("12345678901234567890"), "got 1.2345678901234567e+19", "got ***"},
		{"letters that are not UTF-8", "hunter2", "\xffhunter2\xff", "\uFFFD***\uFFFD"},
		{"text that is not a value", "hunter2", `Secret "db" of type Opaque and app shop: metadata.name`, `Secret "db" of type Opaque and app shop: metadata.name`},
		{"nothing", "hunter2", "", ""},
		{"an empty value", "", "nothing", "nothing"},
	} {
		if got := mask.PatchValues("Secret", secretManifest(t, tt.value)).Mask(tt.text); got != tt.want {
			t.Errorf("%s: got %q of %q, want %q", tt.name, got, tt.text, tt.want)
		}
	}
}

// TestOnlyValuesAreMasked checks which members of a manifest or a patch are values.
func TestOnlyValuesAreMasked(t *testing.T) {
	for submitted, want := range map[string]string{
		`{"data":{"a":"hunter2"}}`:                                                         "***",
		`{"stringdata":{"a":{"b":["hunter2"]}}}`:                                           "***",
		`{"items":[{"data":{"a":"hunter2"}}]}`:                                             "***",
		`{"metadata":{"annotations":{"a/applied":"{\"data\":{\"a\":\"hunter2\"}}"}}}`:      "***",
		`{"metadata":{"annotations":{"a/applied":"kind: Secret\ndata:\n  a: hunter2\n"}}}`: "***",
		`{"metadata":{"annotations":{"moniker.spinnaker.io/application":"hunter2"}}}`:      "hunter2",
		`{"metadata":{"name":"hunter2","labels":{"a":"hunter2"}},"type":"hunter2"}`:        "hunter2",
		`[{"op":"add","path":"/data/a","value":"hunter2"}]`:                                "***",
		`[{"op":"add","path":"/data","value":{"a":"aHVudGVyMg=="}}]`:                       "***",
		`[{"op":"replace","path":"","value":{"data":{"a":"hunter2"}}}]`:                    "***",
		`[{"op":"add","path":"/metadata/annotations/x","value":"hunter2"}]`:                "***",
		`[{"op":"add","path":"/metadata/labels/x","value":"hunter2"}]`:                     "hunter2",
		`["hunter2"]`: "***",
		`"hunter2"`:   "***",
		`{"data":`:    "(not shown: it may quote the Secret)",
	} {
		if got := mask.PatchValues("Secret", []byte(submitted)).Mask("hunter2"); got != want {
			t.Errorf("%s: got %q, want %q", submitted, got, want)
		}
	}
}

// TestEmbeddedSecretsAreMasked checks which values in manifests of other kinds are those of Secrets.
func TestEmbeddedSecretsAreMasked(t *testing.T) {
	const secret = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"a":"hunter2"}}`
	for submitted, want := range map[string]string{
		`{"kind":"Work","spec":{"manifests":[{"kind":"ConfigMap"},` + secret + `]}}`:                                "***",
		`{"kind":"Work","spec":{"list":{"kind":"SecretList","items":[{"data":{"a":"aHVudGVyMg=="}}]}}}`:             "***",
		`{"kind":"Work","metadata":{"annotations":{"a/applied":` + encode(t, `{"x":`+encode(t, secret)+`}`) + `}}}`: "***",
		`[{"op":"add","path":"/spec/one","value":{"k\u0069nd":"S\u0065cret","data":{"a":"hunter2"}}}]`:              "***",
		`[{"op":"add","path":"/spec/one","value":` + secret + `}]`:                                                  "***",
		`{"kind":"ConfigMap","data":{"a":"hunter2"},"ref":{"kind":"Secret","name":"hunter2"}}`:                      "hunter2",
		`{"kind":"Work","spec":{"secret":"hunter2"}}`:                                                               "hunter2",
		`kind: Work`: "hunter2",
	} {
		if got := mask.PatchValues("Work", []byte(submitted)).Mask("hunter2"); got != want {
			t.Errorf("%s: got %q, want %q", submitted, got, want)
		}
	}
}

// TestTruncatedValuesAreMasked checks that the beginning of a value at the end of a text is masked if the
// text was cut, and only then.
func TestTruncatedValuesAreMasked(t *testing.T) {
	v := mask.PatchValues("Secret", secretManifest(t, "hunter2"))
	texts := []mask.Text{{"it is hun", true}, {"it is hun", false}, {"", true}, {"hun", false}, {"ter2 it is hunter2 hunt", true}}
	if got, want := v.MaskAll(texts), []string{"it is ***", "it is hun", "", "hun", "ter2 it is *** ***"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	long := strings.Repeat("x", 16<<10-3) + "hunter2"
	if got := v.Mask(long); len(got) != 16<<10 || !strings.HasSuffix(got, "x***") {
		t.Errorf("got %d bytes, %q", len(got), got[len(got)-9:])
	}
}

// TestTooManyValuesWithholdTheText checks that a text is withheld if there are too many values.
func TestTooManyValuesWithholdTheText(t *testing.T) {
	many := make([]int, 30_000)
	for i := range many {
		many[i] = i
	}
	v := mask.PatchValues("Secret", []byte(`{"data":`+encode(t, many)+`}`))
	if got := v.Mask("nothing"); got != "(not shown: it may quote the Secret)" {
		t.Errorf("got %q", got)
	}
	if got := v.Mask(""); got != "" {
		t.Errorf("got %q", got)
	}
}

// TestSecretsAreRecognized checks which manifests and patches are masked as those of Secrets.
func TestSecretsAreRecognized(t *testing.T) {
	const data = `"data":{"a":"hunter2"}`
	for _, tt := range []struct {
		name   string
		values mask.Values
		want   string
	}{
		{"manifest of a Secret", mask.ManifestValues([]byte(`{"kind":"secrets",` + data + `}`)), "***"},
		{"manifest of a Secret of another group", mask.ManifestValues([]byte(`{"apiVersion":"example.com/v1","kind":"Secret",` + data + `}`)), "***"},
		{"manifest that embeds a Secret", mask.ManifestValues([]byte(`{"kind":"Work","spec":{"kind":"Secret",` + data + `}}`)), "***"},
		{"manifest without a kind", mask.ManifestValues([]byte(`{` + data + `}`)), "***"},
		{"manifest that is not JSON", mask.ManifestValues([]byte(`kind: Secret`)), "(not shown: it may quote the Secret)"},
		{"manifest of a ConfigMap", mask.ManifestValues([]byte(`{"kind":"ConfigMap",` + data + `}`)), "hunter2"},
		{"patch of a Secret", mask.PatchValues("secret", []byte(`{`+data+`}`)), "***"},
		{"patch of a Secret of another group", mask.PatchValues("Secret.example.com", []byte(`{`+data+`}`)), "***"},
		{"patch of a ConfigMap", mask.PatchValues("ConfigMap", []byte(`{`+data+`}`)), "hunter2"},
	} {
		if got := tt.values.Mask("hunter2"); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestIsSecretKind(t *testing.T) {
	for kind, want := range map[string]bool{"Secret": true, "secrets": true, "SECRET": true, "secret.": true, "Secret.v1": true, "SecretList": true,
		"": false, "ConfigMap": false, "SealedSecret": false, "SecretStore": false} {
		if got := mask.IsSecretKind(kind); got != want {
			t.Errorf("%q: got %v", kind, got)
		}
	}
}

func TestIsSecretManifest(t *testing.T) {
	for manifest, want := range map[string]bool{`{"kind":"Secret"}`: true, `{"kind":"secrets","Kind":"ConfigMap"}`: true, `{"kind":"ConfigMap","kind":"Secret"}`: true,
		`{"kind":"ConfigMap","Kind":"Secret"}`: false, `{}`: true, `[]`: true, "kind: ConfigMap": true, `{"kind":7}`: true} {
		if got := mask.IsSecretManifest([]byte(manifest)); got != want {
			t.Errorf("%s: got %v", manifest, got)
		}
	}
}

// BenchmarkMask masks the largest Secrets that API servers accept, with one value or many, in a long
// message.
func BenchmarkMask(b *testing.B) {
	many := map[string]string{}
	for i := range 9_000 {
		many[fmt.Sprint("k", i)] = fmt.Sprint(i * 7919)
	}
	text := strings.Repeat("metadata.name: Invalid value: it is 7919 and not a name; ", 1200)
	for name, data := range map[string]any{"one": map[string]string{"a": strings.Repeat("0123456789abcdefghijklmnopqrstuv\n", 32<<10)}, "many": many} {
		submitted := []byte(encode(b, map[string]any{"kind": "Secret", "stringData": data}))
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				mask.PatchValues("Secret", submitted).Mask(text)
			}
		})
	}
}

// FuzzMask checks that no value is left in a text that quotes it in some form.
func FuzzMask(f *testing.F) {
	f.Add("hunter2", "it is ", " or not")
	f.Add("p\"a\\s's<é>\n", "\xff", "***")
	f.Add("aHVudGVyMg==", "a", "b")
	f.Fuzz(func(t *testing.T, value, before, after string) {
		value = strings.ToValidUTF8(value, "")
		if len(value) < 3 || strings.Contains(value, "*") || strings.Contains(value, "\uFFFD") || len(value)+len(before)+len(after) > 4<<10 {
			return
		}
		v := mask.PatchValues("Secret", secretManifest(t, value))
		for _, form := range []string{value, fmt.Sprintf("%q", value), string(secretManifest(t, value)), base64.StdEncoding.EncodeToString([]byte(value)),
			url.QueryEscape(value), fmt.Sprintf("%x", value), fmt.Sprint([]byte(value)), fmt.Sprintf("%#v", []byte(value))} {
			got := v.Mask(before + form + after)
			if strings.Contains(got, value) && !strings.Contains("***"+after, value) && !strings.Contains(before+"***", value) {
				t.Errorf("%q as %q: got %q", value, form, got)
			}
			if len(form) > 12 && strings.Contains(got, strings.Trim(form, `{}"[]`)) {
				t.Errorf("%q as %q: got %q", value, form, got)
			}
		}
	})
}
