package clouddriver

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestParseProperties(t *testing.T) {
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
		{"invalid JSON invalidates all properties", "SPINNAKER_PROPERTY_A=b\nSPINNAKER_CONFIG_JSON={", "error"},
		{"a JSON list invalidates all properties", `SPINNAKER_CONFIG_JSON=[1]`, "error"},
		{"a line that is too long", strings.Repeat("x", maxLineBytes+1), "error"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found, err := parseProperties(strings.NewReader(tt.log))
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

func FuzzParseProperties(f *testing.F) {
	f.Add("SPINNAKER_PROPERTY_A=b\nSPINNAKER_CONFIG_JSON={\"a\":1}")
	f.Fuzz(func(t *testing.T, log string) {
		found, err := parseProperties(strings.NewReader(log))
		if _, marshalErr := json.Marshal(found); err == nil && marshalErr != nil {
			t.Errorf("%q: cannot encode the properties: %v", log, marshalErr)
		}
	})
}

func TestConsoleShowsTail(t *testing.T) {
	e := tailBuffer{maxBytes: maxConsoleBytes}
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
