package compatibility_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/vedette-io/vedette/test/compatibility"
)

// record writes a recording with some answers and the objects of testdata.
func record(t *testing.T, answers string) *compatibility.Recording {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "1-recording")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	const objects = `[{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"b"}},{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}}]`
	for name, text := range map[string]string{"objects.json": objects, "clouddriver.jsonl": answers} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	recording, err := compatibility.ReadRecording(filepath.Dir(dir))
	if err != nil {
		t.Fatal(err)
	}
	return recording
}

// TestAccountsAreReadFromTheRecording derives the accounts of the agent from a recorded answer.
func TestAccountsAreReadFromTheRecording(t *testing.T) {
	recording := record(t, `{"path":"/credentials?expand=true","status":200,"body":[
		{"name":"restricted","cloudProvider":"kubernetes","namespaces":["a"],"environment":"staging","permissions":{"READ":["dev"]}},
		{"name":"cloud","cloudProvider":"aws"},{"name":"all","cloudProvider":"kubernetes","namespaces":["b","a"],"accountType":"all"}]}`)
	got, err := recording.Accounts()
	want := []compatibility.Account{{Name: "all", AccountType: "all"},
		{Name: "restricted", Namespaces: []string{"a"}, Environment: "staging", Permissions: map[string][]string{"READ": {"dev"}}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	got, err = record(t, `{"path":"/credentials","status":200,"body":[]}`).Accounts()
	if err != nil || !reflect.DeepEqual(got, compatibility.DefaultAccounts()) {
		t.Errorf("without the answer: got %+v, %v, want the default", got, err)
	}
	if got, err := record(t, `{"path":"/credentials?expand=true","status":500,"body":{}}`).Accounts(); err == nil {
		t.Errorf("got %+v of an error", got)
	}
}

func TestReadRecordingErrors(t *testing.T) {
	dir := t.TempDir()
	if _, err := compatibility.ReadRecording(dir); err == nil {
		t.Error("got no error for an empty directory")
	}
	if _, err := compatibility.FindRecordings(filepath.Join(dir, "nowhere")); err == nil {
		t.Error("got no error for a directory that does not exist")
	}
	for _, objects := range []string{"{", `[{"kind":"Pod"}]`} {
		file := filepath.Join(dir, "objects.json")
		if err := os.WriteFile(file, []byte(objects), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := compatibility.ReadObjects(file); err == nil {
			t.Errorf("%s: got no error", objects)
		}
	}
}
