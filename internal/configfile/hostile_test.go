package configfile

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// nested returns a YAML file whose aliases nest lists much deeper than the file is long.
func nested(aliases, depth int) string {
	var b strings.Builder
	b.WriteString("other:\n- &a0 x\n")
	for i := range aliases {
		fmt.Fprintf(&b, "- &a%d %s*a%d %s\n", i+1, strings.Repeat("[", depth), i, strings.Repeat("]", depth))
	}
	return b.String()
}

// TestExpandingFilesAreRejected checks that files which expand to much more than they contain are rejected before
// they need the memory, and that a message about them stays short.
func TestExpandingFilesAreRejected(t *testing.T) {
	big, bigKey := strings.Repeat("x", 1<<20), "? "+strings.Repeat("k", 1<<20)+"\n: "
	for name, tt := range map[string]struct{ file, want string }{
		"values without end":              {"numbers: [" + strings.Repeat("1,", 4<<20-10) + "1]", "more than 200000 values"},
		"lines without end":               {"numbers:\n" + strings.Repeat("- 1\n", 1<<20), "more than 200000 values"},
		"nested aliases":                  {nested(200, 50), "nested more than 100 levels deep"},
		"deep nesting":                    {"other: " + strings.Repeat("[", 9000) + strings.Repeat("]", 9000), "nested more than 100 levels deep"},
		"deeper nesting":                  {"other: " + strings.Repeat("{a: ", 100_000) + strings.Repeat("}", 100_000), "exceeded max depth"},
		"a large key of many values":      {"other:\n" + indent(bigKey+"["+strings.Repeat("1,", 150_000)+"1]"), "a key must have at most 1024 bytes, got 1048576"},
		"a large value in many":           {"labels: {big: " + big + "}\nentries: [" + strings.Repeat("{name: '${labels.big}'},", 1000) + "]", "expand to more than 64 MiB"},
		"placeholders in each other":      {"name: '" + strings.Repeat("${", 9000) + big + strings.Repeat("}", 9000) + "'", "expand to more than 64 MiB"},
		"placeholders of placeholders":    {"labels: " + doubling(12) + "\nentries: [" + strings.Repeat("{name: '${labels.a12}'},", 1000) + "]", "expands more than 500000 placeholders"},
		"a long name of a placeholder":    {"labels.big: &big '${" + big + "}'\nentries: [" + strings.Repeat("{name: *big},", 1000) + "]", "is neither a key"},
		"a long name that refers to none": {"labels: {a: '${labels.b}', b: '${labels.a}'}\nname: '${labels.a}'", "refers to itself"},
		"a password that begins with *":   {"enabled: true\nserver.password: *hunter2", "s.yml:2: this is not valid YAML: a value begins with *"},
		"a password that begins with !":   {"server.password: !hunter2", "put a value that begins with ! into quotes"},
		"a password after a tag":          {"server.password: !hunter2 hunter3", "put a value that begins with ! into quotes"},
		"a password that begins with &":   {"server.password: &hunter2\nserver.port: &hunter2 {a: *hunter2}", "the alias refers to itself"},
		"a password with a quote":         {"server.password: 'hunter2'hunter3", "this is not valid YAML"},
		"a password with a colon":         {"server.password: hunter2: hunter3", "this is not valid YAML"},
		"a password that begins with @":   {"server.password: @hunter2", "this is not valid YAML"},
		"a password that begins with %":   {"server.password: %hunter2", "this is not valid YAML"},
		"a password that begins with [":   {"server.password: [hunter2", "this is not valid YAML"},
		"bytes that are not UTF-8":        {"name: \xff\xfe", "this is not valid YAML"},
		"control characters":              {"name: \x1b[2J", "this is not valid YAML: control characters"},
	} {
		t.Run(name, func(t *testing.T) {
			before := allocated()
			var s sample
			report := Parse("s.yml", []byte(tt.file), sampleOptions, &s)
			err := report.Err()
			if used := allocated() - before; used > 600<<20 {
				t.Errorf("%d MiB were allocated", used>>20)
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %.1000v, want %s", err, tt.want)
			}
			printed := fmt.Sprint(err, report.Unused(nil), report.UnknownKeys())
			if len(printed) > 1<<20 || strings.Contains(printed, "hunter") {
				t.Errorf("the messages have %d bytes and contain a password %v: %.2000s", len(printed), strings.Contains(printed, "hunter"), printed)
			}
		})
	}
}

func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }

// doubling returns values of which each has twice the placeholders of the one before.
func doubling(n int) string {
	parts := []string{"a0: x"}
	for i := range n {
		parts = append(parts, fmt.Sprintf("a%d: '${labels.a%d}${labels.a%d}'", i+1, i, i))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// allocated returns how many bytes were allocated since the start.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// TestMissingImportsAreCountedToo checks that files which need not exist are counted too.
func TestMissingImportsAreCountedToo(t *testing.T) {
	dir := t.TempDir()
	var imports strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&imports, "optional:no-such-file-%d.yml,", i)
	}
	path := filepath.Join(dir, "s.yml")
	if err := os.WriteFile(path, []byte("spring.config.import: "+imports.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	var s sample
	report := load(Search{File: path}, sampleOptions, &s)
	if err := report.Err(); err == nil || !strings.Contains(err.Error(), "put their settings into fewer files") || len(report.Files) > 600 {
		t.Errorf("got %d files and error %.300v", len(report.Files), err)
	}
}

// TestImportsOfWhatIsNotAFile imports what must not be read.
func TestImportsOfWhatIsNotAFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("loop.yml", filepath.Join(dir, "loop.yml")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/dev/zero": "not a regular file", dir: "is a directory", "loop.yml": "too many levels of symbolic links",
		"http://evil.example/a.yml": "only files can be imported", strings.Repeat("a", 300) + ".yml": "file name too long",
		"a\x1b[2Jb.yml": `a\x1b[2Jb.yml`, "../../../../../../../../proc/self/mem": "read the file",
	} {
		file := filepath.Join(dir, "s.yml")
		if err := os.WriteFile(file, fmt.Appendf(nil, "spring.config.import: [%q]", path), 0o600); err != nil {
			t.Fatal(err)
		}
		var s sample
		err := load(Search{File: file}, sampleOptions, &s).Err()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%.50q: got %q, want %q", path, err, want)
		}
	}
}

// TestTextOfOtherEncodings checks that bytes which are not UTF-8 reach no name, whether they come from
// the environment or from a secret. A password may have any bytes.
func TestTextOfOtherEncodings(t *testing.T) {
	o := sampleOptions
	o.Env = func(name string) (string, bool) {
		value, ok := map[string]string{"LATIN": "caf\xe9", "T_LEVEL": "caf\xe9"}[name]
		return value, ok
	}
	secrets := func(string) (string, error) { return "hunter2\xff", nil }
	var s sample
	report := ReadData("s.yml", []byte(`
name: ${LATIN}
words: ${LATIN},b
labels: {a: "encrypted:x"}
server.password: encrypted:x
entries: [{name: "${LATIN}"}]
`), o, &s).Decode(&s, secrets)
	text := fmt.Sprint(report.Err())
	for _, key := range []string{"level", "name", "words", "labels.a", "entries[0].name"} {
		if !strings.Contains(text, fmt.Sprintf("%q must not contain the byte", key)) {
			t.Errorf("%s: got %s", key, text)
		}
	}
	if s.Server.Password.Reveal() != "hunter2\xff" || len(report.Problems) != 5 || strings.Contains(text, "hunter2") {
		t.Errorf("got password %q and %s", s.Server.Password.Reveal(), text)
	}
}

// TestOneLinePerSetting checks that values and keys cannot forge lines of check, or move the cursor.
func TestOneLinePerSetting(t *testing.T) {
	var s sample
	report := Parse("s\n.yml", []byte(`labels: {"a\nb = forged (default)": "x\e[2J\nname = forged (default)"}
"fut\nure2": {"x\e": 1}
future: {speed: 1}
`), sampleOptions, &s)
	lines := report.Unused(nil)
	for _, kv := range Effective(&s, report) {
		lines = append(lines, kv.String())
	}
	for _, p := range report.Problems {
		lines = append(lines, p.Error())
	}
	text := strings.Join(lines, "|")
	if strings.ContainsAny(text, "\n\x1b") || !strings.Contains(text, `"x\x1b[2J\nname = forged (default)"`) {
		t.Errorf("got %q", text)
	}
}

// TestMessagesMaskAllSecrets checks that messages about accounts with secrets are shown, and mask the secrets of
// the account and those of all accounts together.
func TestMessagesMaskAllSecrets(t *testing.T) {
	secrets := func(reference string) (string, error) {
		var text strings.Builder
		for i := range 400 { // all secrets together have more lines than one search looks for
			fmt.Fprintf(&text, "%s-hunter2, line %d\n", reference, i)
		}
		return text.String(), nil
	}
	var file strings.Builder
	file.WriteString("labels: {token: 'encrypted:common'}\nentries:\n")
	const count = 60
	for i := range count {
		fmt.Fprintf(&file, "- {name: 'encrypted:%d', tryTimes: '${labels.token}', unknown: 1, inner: 'encrypted:x'}\n", i)
	}
	var s sample
	report := ReadData("s.yml", []byte(file.String()), sampleOptions, &s).Decode(&s, secrets)
	report.Add(Position{}, "entries[7].name", "got %q and %q", s.Entries[7].Name, s.Labels["token"])
	for _, p := range report.Problems {
		if text := p.Message; strings.Contains(text, "hunter2") || strings.Contains(text, "not shown: it") {
			t.Errorf("got %.300s", text)
		}
	}
	if len(report.Problems) != 3*count+1 {
		t.Errorf("got %d problems, want %d", len(report.Problems), 3*count+1)
	}
}
