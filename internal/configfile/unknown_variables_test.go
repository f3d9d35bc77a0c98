package configfile

import (
	"slices"
	"testing"
)

// TestMisspeltVariablesAreNamed checks which variables are named, and with which suggestion.
func TestMisspeltVariablesAreNamed(t *testing.T) {
	type group struct {
		GRPC string `config:"grpc"`
	}
	type settings struct {
		Group  group             `config:"clouddriver"`
		List   []group           `config:"list"`
		Words  []string          `config:"allowedZoneLabels"`
		Fields map[string]string `config:"fields"`
		Level  string            `config:"logging-level" env:"VEDETTE_LEVEL"`
	}
	const prefix = "VEDETTE_AGENT_"
	for variable, want := range map[string]string{
		"VEDETTE_AGENT_CLOUDDRIVER_GRPC=x":        "",
		"VEDETTE_AGENT_CLOUDDRIVER_GRCP=secret":   "VEDETTE_AGENT_CLOUDDRIVER_GRCP: did you mean VEDETTE_AGENT_CLOUDDRIVER_GRPC?",
		"VEDETTE_AGENT_LIST_GRPC=x":               "VEDETTE_AGENT_LIST_GRPC",
		"VEDETTE_AGENT_LIST=x":                    "VEDETTE_AGENT_LIST",
		"VEDETTE_AGENT_FIELDS=x":                  "VEDETTE_AGENT_FIELDS",
		"VEDETTE_AGENT_FIELDZ=x":                  "VEDETTE_AGENT_FIELDZ",
		"VEDETTE_AGENT_ALLOWEDZONELABELS=a,b":     "",
		"VEDETTE_AGENT_LOGGINGLEVEL=x":            "",
		"VEDETTE_LEVEL=x":                         "",
		"VEDETTE_USRE=x":                          "VEDETTE_USRE: did you mean VEDETTE_USER, VEDETTE_CERT or VEDETTE_KEY?",
		"VEDETTE_USER=x":                          "",
		"VEDETTE_SERVER_SQL_URL=x":                "", // of the server
		"VEDETTE_TEST_POSTGRES=x":                 "",
		"VEDETTE_AGENT_SERVICE_HOST=10.0.0.1":     "",
		"VEDETTE_AGENT_SERVICE_PORT_HTTP=80":      "",
		"VEDETTE_AGENT_PORT=tcp://10.0.0.1:80":    "",
		"VEDETTE_AGENT_PORT_80_TCP_ADDR=10.0.0.1": "",
		"VEDETTE_AGENT_PORT=80":                   "VEDETTE_AGENT_PORT",
		"PATH=/bin":                               "",
	} {
		got := UnknownVariables(&settings{}, prefix, []string{variable})
		if want == "" && len(got) > 0 || want != "" && !slices.Equal(got, []string{want}) {
			t.Errorf("%s: got %q, want %q", variable, got, want)
		}
	}
}
