package compare_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/compare"
)

// terminalCodes clear the screen, set the title, and reverse the direction of the text. The second
// has no byte below 0x80 that is special.
const terminalCodes = "\x1b[2J\x07\u009b2J\u202e\x7f\r"

func hasTerminalCodes(text string) bool {
	return strings.ContainsAny(text, "\x1b\x07\u009b\u202e\x7f\r")
}

// TestTerminalCodesAreNotPrinted checks names and values that a server chooses.
func TestTerminalCodesAreNotPrinted(t *testing.T) {
	quoted := strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(terminalCodes, "\x1b", `\u001b`), "\x07", `\u0007`), "\r", `\r`)
	path := "/applications/" + terminalCodes
	report, err := compare.Run(t.Context(), answers{path: `200 {"name":"` + quoted + `"}`, "/tags": `500 "` + quoted + `"`},
		answers{path: `200 {"name":"b","` + quoted + `":1}`, "/tags": "200 []"}, []string{path, "/tags", "/missing" + terminalCodes}, compare.Options{ShowValues: true})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := report.Print(&out, false); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); hasTerminalCodes(text) || !strings.Contains(text, `\u009b2J\u202e\u007f`) {
		t.Errorf("got %q, want escaped text", text)
	}
	account := fmt.Sprintf(`[{"name":"%s","type":"kubernetes"}]`, quoted)
	server := newServer(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, account) })
	other := newServer(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "[]") })
	if _, err := compare.Discover(t.Context(), server, other, compare.Scope{}, 1); err == nil || hasTerminalCodes(err.Error()) {
		t.Errorf("got error %q, want one with escaped text", err)
	}
}

// TestVeryManyValues checks a small answer that would take gigabytes after it is decoded.
func TestVeryManyValues(t *testing.T) {
	source := newServer(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "[{}"+strings.Repeat(",{}", 3<<20)+"]") })
	if _, err := source.Answer(t.Context(), "/applications"); err == nil || !strings.Contains(err.Error(), "values, more than the limit") {
		t.Errorf("got error %v, want one about the number of values", err)
	}
}
