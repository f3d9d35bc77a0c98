package configfile

import (
	"slices"
	"testing"
)

// TestTextsOfSecretsAreFound checks which texts of a file and of the environment log lines must not contain.
func TestTextsOfSecretsAreFound(t *testing.T) {
	type settings struct {
		Password Secret            `config:"password"`
		Other    Secret            `config:"other"`
		Args     []Secret          `config:"args"`
		Headers  map[string]Secret `config:"headers"`
		Proxy    string            `config:"proxy"`
		URL      string            `config:"url"`
		Name     string            `config:"name"`
	}
	tests := []struct {
		name, file string
		want       []string
	}{
		{"a password", "password: in the file", []string{"in the file"}},
		{"a number", "password: 1234567", []string{"1234567"}},
		{"of a variable", "password: ${OUTSIDE}", []string{"from outside"}},
		{"a header", "headers: {Authorization: Bearer abcdef}", []string{"Bearer abcdef", "abcdef"}},
		{"arguments", "args: [get-token, --cluster=production, --password=opensesame]", []string{"opensesame"}},
		{"the password of a proxy", "proxy: http://me:p%40ss@proxy:3128", []string{"p%40ss", "p@ss"}},
		{"a password in a parameter", "url: jdbc:mysql://db/vedette?user=me&password=opensesame", []string{"opensesame"}},
		{"a password that is also a name", "password: vedette\nname: vedette", nil},
		{"a password that is also the user of a URL", "url: jdbc:mysql://vedette:vedette@db/x", nil},
		{"a password that is also a parameter", "url: jdbc:mysql://db/x?user=vedette&password=vedette", nil},
		{"a password that is also a database", "url: jdbc:mysql://db/vedette?password=vedette", nil},
		{"no secret", "name: http://host/path\nurl: mailto:me", nil},
		{"an empty password", `password: ""`, nil},
	}
	for _, tt := range tests {
		var s settings
		env := map[string]string{"OUTSIDE": "from outside"}
		report := Parse("a.yml", []byte(tt.file), Options{Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}, &s)
		if err := report.Err(); err != nil {
			t.Fatal(err)
		}
		got := report.SecretTexts()
		slices.Sort(got)
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
