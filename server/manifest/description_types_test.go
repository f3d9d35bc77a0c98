package manifest

import (
	"encoding/json"
	"testing"
)

// TestBooleansAreReadAsByClouddriver checks which values count as false, which are missing, and which are invalid, as in Clouddriver.
func TestBooleansAreReadAsByClouddriver(t *testing.T) {
	for raw, want := range map[string]struct{ isTrue, isTrueByDefault, isInvalid bool }{
		`{}`: {false, true, false}, `{"a":true}`: {true, true, false}, `{"a":false}`: {},
		`{"a":"True"}`: {true, true, false}, `{"a":" TRUE "}`: {true, true, false}, `{"a":"False"}`: {},
		`{"a":null}`: {}, `{"a":""}`: {}, `{"a":" "}`: {}, `{"a":"null"}`: {}, `{"a":0}`: {}, `{"a":2}`: {true, true, false},
		`{"a":"tRUE"}`: {isInvalid: true}, `{"a":"1"}`: {isInvalid: true}, `{"a":1.5}`: {isInvalid: true}, `{"a":[]}`: {isInvalid: true},
		`{"a":{}}`: {isInvalid: true},
	} {
		var d struct{ A OptionalBool }
		if err := json.Unmarshal([]byte(raw), &d); (err != nil) != want.isInvalid {
			t.Errorf("%s: got error %v, want one: %t", raw, err, want.isInvalid)
		}
		if want.isInvalid {
			continue
		}
		if got := d.A.OrDefault(false); got != want.isTrue {
			t.Errorf("%s: got %t, want %t", raw, got, want.isTrue)
		}
		if got := d.A.OrDefault(true); got != want.isTrueByDefault {
			t.Errorf("%s, which is true by default: got %t, want %t", raw, got, want.isTrueByDefault)
		}
	}
}
