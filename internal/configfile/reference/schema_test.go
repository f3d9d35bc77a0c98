package reference

import (
	"encoding/json"
	"testing"

	"github.com/vedette-io/vedette/internal/configfile"
)

// TestSchemaNamesEachKey checks that a schema has groups, lists of groups, aliases, keys beside those of a group that is open, and types.
func TestSchemaNamesEachKey(t *testing.T) {
	type account struct {
		Name string `config:"name"`
	}
	type config struct {
		Server struct {
			Port   int               `config:"port,alias=httpPort"`
			Secret configfile.Secret `config:"secret"`
		} `config:"server"`
		Accounts []account          `config:"accounts"`
		Fiat     account            `config:"services.fiat"`
		Services configfile.Ignored `config:"services,ignored"`
		Hosts    []string           `config:"hosts"`
	}
	const scalar = `{"type":["string","number","boolean"]}`
	const port = `{"anyOf":[{"type":"integer"},{"pattern":"^-?[0-9_]+$|\\$\\{","type":"string"}]}`
	const named = `{"additionalProperties":false,"properties":{"name":` + scalar + `},"type":"object"}`
	want := `{"additionalProperties":false,"properties":{` +
		`"accounts":{"items":` + named + `,"type":"array"},` +
		`"hosts":{"anyOf":[{"items":` + scalar + `,"type":"array"},{"type":"string"}]},` +
		`"server":{"additionalProperties":false,"properties":{"httpPort":` + port + `,"port":` + port + `,"secret":` + scalar + `},"type":"object"},` +
		`"services":{"properties":{"fiat":` + named + `},"type":"object"}},"type":"object"}`
	got, err := json.Marshal(Schema(config{}))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
