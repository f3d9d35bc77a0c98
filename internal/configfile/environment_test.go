package configfile

import "testing"

// TestVariablesOfAliasesSetTheirKeys checks that a variable works on after its key has got another name.
func TestVariablesOfAliasesSetTheirKeys(t *testing.T) {
	var c struct {
		Agents struct {
			Heartbeat int `config:"heartbeatSeconds,alias=pulse-seconds"`
		} `config:"agents"`
	}
	for _, tt := range []struct {
		environment map[string]string
		want        int
	}{
		{map[string]string{"X_AGENTS_PULSESECONDS": "7"}, 7},
		{map[string]string{"X_AGENTS_PULSESECONDS": "7", "X_AGENTS_HEARTBEATSECONDS": "8"}, 8}, // the name counts more than the alias
		{map[string]string{"X_AGENTS_PULSESECONDS": "", "X_AGENTS_HEARTBEATSECONDS": "8"}, 8},
		{map[string]string{"X_PULSESECONDS": "7"}, 3},
	} {
		c.Agents.Heartbeat = 3
		env := func(name string) (string, bool) { value, ok := tt.environment[name]; return value, ok }
		if err := Parse("c.yml", nil, Options{Env: env, EnvPrefix: "X_"}, &c).Err(); err != nil || c.Agents.Heartbeat != tt.want {
			t.Errorf("%v: got %d, %v, want %d", tt.environment, c.Agents.Heartbeat, err, tt.want)
		}
	}
	if got := UnknownVariables(&c, "VEDETTE_X_", []string{"VEDETTE_X_AGENTS_PULSESECONDS=7"}); len(got) > 0 {
		t.Errorf("got the unknown variables %q, want none", got)
	}
}
