package configfile

import (
	"strings"
	"testing"
	"time"
)

// limited has settings with limits.
type limited struct {
	Timeout  time.Duration `config:"timeoutMs" format:"milliseconds" default:"500" minimum:"1" maximum:"60000"`
	Keep     time.Duration `config:"keep" default:"30d" minimum:"1h"`
	Bytes    int64         `config:"bytes" format:"bytes" default:"8MiB" minimum:"1MiB"`
	Small    int32         `config:"small" format:"bytes"`
	Port     int           `config:"port" format:"port" default:"7002"`
	Share    float64       `config:"share" default:"1" minimum:"0" maximum:"1"`
	Protocol string        `config:"protocol" enum:"http,https" default:"http"`
	Pause    *int          `config:"pause" minimum:"0"`
	Entries  []struct {
		Age int `config:"age,ignored" minimum:"0"`
	} `config:"entries"`
}

func TestValuesOutsideLimitsAreNamed(t *testing.T) {
	for file, want := range map[string]string{
		"timeoutMs: 60000\nkeep: 1h\nbytes: 1MiB\nport: 0\nshare: 0\nprotocol: HTTPS\npause: 0": "",
		"timeoutMs: 0":             `c.yml:1:12: "timeoutMs" must be from 1 to 60000, got 0`,
		"timeoutMs: 60001":         `c.yml:1:12: "timeoutMs" must be from 1 to 60000, got 60001`,
		"timeoutMs: 1s":            `c.yml:1:12: "timeoutMs" must be a whole number, got "1s"`,
		"timeoutMs: 9999999999999": `c.yml:1:12: "timeoutMs" must be a smaller number, got "9999999999999"`,
		"keep: 30m":                `c.yml:1:7: "keep" must be 1h or more, got 30m0s`,
		"bytes: 1KiB":              `c.yml:1:8: "bytes" must be at least 1MiB, got 1KiB`,
		"small: 4GiB":              `c.yml:1:8: "small" must be a smaller number, got "4GiB"`,
		"port: 65536":              `c.yml:1:7: "port" must be a port from 0 to 65535, got 65536`,
		"share: 1.5":               `c.yml:1:8: "share" must be from 0 to 1, got 1.5`,
		"protocol: ftp":            `c.yml:1:11: "protocol" must be one of http, https, got "ftp"`,
		"pause: -1":                `c.yml:1:8: "pause" must not be negative, got -1`,
		"entries: [{age: -1}]":     `c.yml:1:17: "entries[0].age" must not be negative, got -1`,
	} {
		var c limited
		got := ""
		if err := Parse("c.yml", []byte(file), Options{}, &c).Err(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", file, got, want)
		}
	}
}

// TestEnvironmentReplacesValueOutsideOfLimits checks that only the value that counts has limits.
func TestEnvironmentReplacesValueOutsideOfLimits(t *testing.T) {
	env := func(name string) (string, bool) { return "7002", name == "X_PORT" }
	var c limited
	if err := Parse("c.yml", []byte("port: 70000"), Options{Env: env, EnvPrefix: "X_"}, &c).Err(); err != nil || c.Port != 7002 {
		t.Errorf("got port %d, error %v", c.Port, err)
	}
}

func TestNumbersAreShownAsFilesHaveThem(t *testing.T) {
	var c limited
	r := Parse("c.yml", []byte("timeoutMs: 250\nbytes: 2097152\nkeep: 2h"), Options{}, &c)
	if c.Timeout != 250*time.Millisecond || c.Bytes != 2<<20 || c.Keep != 2*time.Hour {
		t.Errorf("got %+v", c)
	}
	var lines []string
	for _, kv := range Effective(c, r) {
		lines = append(lines, kv.Key+"="+kv.Value)
	}
	if got := strings.Join(lines, " "); !strings.HasPrefix(got, "timeoutMs=250 keep=2h0m0s bytes=2MiB small=0 port=7002 ") {
		t.Error("got", got)
	}
}

func TestDefaultsFillUnsetFields(t *testing.T) {
	c := WithDefaults(limited{Keep: time.Hour})
	if c.Timeout != 500*time.Millisecond || c.Keep != time.Hour || c.Bytes != 8<<20 || c.Protocol != "http" || c.Pause != nil {
		t.Errorf("got %+v", c)
	}
}
