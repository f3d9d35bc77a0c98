package manifests

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/server/rest"
)

func unlimited(int) error { return nil }

func TestPropertiesAreReadFromLogs(t *testing.T) {
	for _, tt := range []struct{ name, log, want string }{
		{"nothing", "", `{}`},
		{"lines without properties", "a=b\n=\nSPINNAKER_PROPERTY_\n", `{}`},
		{"a property", "SPINNAKER_PROPERTY_Image_Tag=v1\n", `{"image_tag":"v1"}`},
		{"after a logger's prefix", "  12:00 INFO SPINNAKER_PROPERTY_A=b \r\n", `{"12:00 info a":"b"}`},
		{"with space around the equals sign", "SPINNAKER_PROPERTY_A = b", `{"a":"b"}`},
		{"a value with an equals sign", "SPINNAKER_PROPERTY_A=b=c", `{"a":"b=c"}`},
		{"without a value", "SPINNAKER_PROPERTY_A=\nSPINNAKER_PROPERTY_B", `{}`},
		{"the marker is removed once", "SPINNAKER_PROPERTY_SPINNAKER_PROPERTY_A=b", `{"spinnaker_property_a":"b"}`},
		{"the marker is case-sensitive", "spinnaker_property_a=b", `{}`},
		{"the last one wins", "SPINNAKER_PROPERTY_A=b\nSPINNAKER_PROPERTY_A=c", `{"a":"c"}`},
		{"JSON keeps its names and numbers", `  SPINNAKER_CONFIG_JSON={"Big":12345678901234567890,"list":[1.50]}`, `{"Big":12345678901234567890,"list":[1.50]}`},
		{"JSON is merged", "SPINNAKER_CONFIG_JSON={\"a\":1,\"b\":{\"c\":1}}\nSPINNAKER_CONFIG_JSON={\"b\":{\"d\":2}}", `{"a":1,"b":{"d":2}}`},
		{"JSON that does not begin the line", `x SPINNAKER_CONFIG_JSON={"a":1}`, `{}`},
		{"text after the JSON", `SPINNAKER_CONFIG_JSON={"a":1} # done`, `{"a":1}`},
		{"a name twice", `SPINNAKER_CONFIG_JSON={"a":1,"a":2}`, `{"a":2}`},
		{"half an object", `SPINNAKER_CONFIG_JSON={"a":1`, "error"},
		{"no JSON object", `SPINNAKER_CONFIG_JSON=null`, `{}`},
		{"JSON with bytes that are not text", "SPINNAKER_CONFIG_JSON={\"a\":\"\xff\"}", "{\"a\":\"\uFFFD\"}"},
		{"invalid JSON invalidates all properties", "SPINNAKER_PROPERTY_A=b\nSPINNAKER_CONFIG_JSON={", "error"},
		{"a JSON list invalidates all properties", `SPINNAKER_CONFIG_JSON=[1]`, "error"},
		{"a line that is too long", strings.Repeat("x", maxLineBytes+1), "error"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found, err := parseProperties(strings.NewReader(tt.log), unlimited)
			got, marshalErr := json.Marshal(found)
			if marshalErr != nil {
				t.Fatal(marshalErr)
			}
			if (err != nil) != (tt.want == "error") || err == nil && string(got) != tt.want {
				t.Errorf("got %s, %v\nwant %s", got, err, tt.want)
			}
		})
	}
}

// TestPropertiesTakeLittleMemory reads values that would take a hundred times more memory than their text.
func TestPropertiesTakeLittleMemory(t *testing.T) {
	values := "[" + strings.TrimSuffix(strings.Repeat(`{"":0},`, maxLineBytes/7-10), ",") + "]"
	var members strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&members, `"%d":0,`, i)
	}
	for _, tt := range []struct {
		name, log string
		want      string // of the error
	}{
		{"short values", configMarker + `{"a":` + values + "}", ""},
		{"short values twice", strings.Repeat(configMarker+`{"a":`+values+"}\n", 2), "more than 16 MiB"},
		{"many members", configMarker + "{" + strings.TrimSuffix(members.String(), ",") + "}", "more than 16 MiB"},
		{"many properties", strings.Repeat("SPINNAKER_PROPERTY_a=b\n", 120_000), "more than 16 MiB"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		reserved := 0
		found, err := parseProperties(strings.NewReader(tt.log), func(bytes int) error { reserved += bytes; return nil })
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(found)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
		if taken := after.TotalAlloc - before.TotalAlloc; taken > 96<<20 {
			t.Errorf("%s: %d MiB were allocated", tt.name, taken>>20)
		}
		if err == nil && reserved < len(tt.log) {
			t.Errorf("%s: %d bytes were reserved for %d", tt.name, reserved, len(tt.log))
		}
	}
}

// TestLinesPayBeforeTheyEnd breaks a log within a long line.
func TestLinesPayBeforeTheyEnd(t *testing.T) {
	const line = 7 << 20
	reserved := 0
	log := io.MultiReader(strings.NewReader("short\n"+strings.Repeat("x", line)), readerFunc(func([]byte) (int, error) {
		if reserved < 2*line {
			t.Errorf("%d bytes were reserved for a line of %d that has not ended, want its buffer", reserved, line)
		}
		return 0, errors.New("the log broke")
	}))
	if _, err := parseProperties(log, func(bytes int) error { reserved += bytes; return nil }); err == nil {
		t.Error("the log broke, want an error")
	}
	refused := errors.New("no memory")
	if _, err := parseProperties(strings.NewReader(strings.Repeat("x", line)), func(int) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("got %v, want that there is no memory", err)
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestEscapesArePaidFor reads texts that take six times as much as JSON.
func TestEscapesArePaidFor(t *testing.T) {
	for _, c := range []string{"x", `"`, "\x01", "\xff", "\u2028", "\u00e9", "é\xff"} {
		text := strings.Repeat(c, 100_000)
		reserved := 0
		found, err := parseProperties(strings.NewReader("SPINNAKER_PROPERTY_a="+text+"\n"), func(bytes int) error { reserved += bytes; return nil })
		if err != nil {
			t.Fatal(err)
		}
		if encoded := len(found["a"]); reserved < 5*encoded {
			t.Errorf("%q: a property of %d bytes reserved %d, want five copies", c, encoded, reserved)
		}
		encoded, err := rest.Encode(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := encodedSize([]containerOutput{{Output: text}}); got < 2*len(text) || got < 2*(len(encoded)-len(`""`)-1) {
			t.Errorf("%q: a console counts %d bytes for %d as JSON, want two copies", c, got, len(encoded))
		}
	}
}

func FuzzParseProperties(f *testing.F) {
	f.Add("SPINNAKER_PROPERTY_A=b\nSPINNAKER_CONFIG_JSON={\"a\":1}")
	f.Fuzz(func(t *testing.T, log string) {
		found, err := parseProperties(strings.NewReader(log), unlimited)
		if _, marshalErr := json.Marshal(found); err == nil && marshalErr != nil {
			t.Errorf("%q: cannot encode the properties: %v", log, marshalErr)
		}
	})
}

func TestConsoleShowsTail(t *testing.T) {
	e := tailBuffer{maxBytes: maxConsoleBytes, grow: unlimited}
	line := strings.Repeat("x", 999) + "\n"
	for range 3 * maxConsoleBytes / len(line) {
		if _, err := e.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	text := e.String()
	if len(text) > 2*maxConsoleBytes || len(text) < maxConsoleBytes-len(line) || len(text)%len(line) != 0 {
		t.Errorf("got %d bytes, want whole lines of at most %d bytes", len(text), 2*maxConsoleBytes)
	}
}
