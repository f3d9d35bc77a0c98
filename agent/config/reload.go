package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/configfile"
)

// Next loads the configuration again from where c was loaded, and the files that were read or looked
// for, even if there is an error. Either Adopt or Close the result; c stays in effect until then. The
// names that c has by default stay, because they must not change while the agent runs.
//
// Files that had content and are empty now are errors: they are being written, or a program that
// writes them has failed. So is a configuration of which no file is left.
func (c *Config) Next() (*Config, []configfile.File, error) {
	next, files, err := c.source.load(c.secrets.Next)
	if err != nil {
		return nil, files, err
	}
	if err := c.findLostFile(next); err != nil {
		_ = next.Close() // its error would hide the first one
		return nil, files, err
	}
	if !next.report.IsSet("agentId") {
		next.AgentID = c.AgentID
	}
	if !next.report.IsSet("zoneId") {
		next.ZoneID = c.ZoneID
	}
	return next, files, nil
}

func (c *Config) findLostFile(next *Config) error {
	if c.Path != "" && next.Path == "" {
		return vedette.Errorf(vedette.Invalid, "%s does not exist anymore, and neither does another configuration file: restore it, or restart the agent", c.Path)
	}
	states := map[string]configfile.FileState{}
	for _, file := range next.Files() {
		states[file.Path] = file.State
	}
	for _, path := range c.ReadFiles() {
		if state, isKnown := states[path]; isKnown && state == configfile.FileEmpty {
			return vedette.Errorf(vedette.Invalid, "%s has become empty: write its settings again, or remove the file if its settings shall not apply anymore", path)
		}
	}
	return nil
}

// Adopt makes c the successor of the configuration whose Next it is, which must not be used anymore. If
// accounts were rejected, those before stay in effect, and so do the files with their secrets.
func (c *Config) Adopt() error {
	if len(c.RejectedAccounts) > 0 {
		c.secrets.AdoptKeepingFiles()
		return nil
	}
	if err := c.secrets.Adopt(); err != nil {
		return fmt.Errorf("remove secrets that are not used anymore: %w", err)
	}
	return nil
}

// reloadable are the paths of the settings that can change while the agent runs.
var reloadable = [...]string{"logging.level", "kubernetes.accounts", "kubernetes.noProxy", "secrets.", "spring."}

// NeedRestart returns the keys whose values differ from before and which count from the next start on
// only. Of secrets only clouddriver.auth.token is compared.
func (c *Config) NeedRestart(before *Config) []string {
	var keys []string
	now, then := valuesByKey(c), valuesByKey(before)
	for _, kv := range slices.Concat(c.Effective(), before.Effective()) {
		if now[kv.Key] != then[kv.Key] && !isReloadable(kv.Key) && !slices.Contains(keys, kv.Key) {
			keys = append(keys, kv.Key)
		}
	}
	return keys
}

// valuesByKey returns the effective settings. Secrets are masked, but for the token that agents show
// to a proxy.
func valuesByKey(c *Config) map[string]string {
	values := map[string]string{}
	for _, kv := range c.Effective() {
		values[kv.Key] = kv.Value
	}
	values["clouddriver.auth.token"] = c.Clouddriver.Auth.Token.Reveal()
	return values
}

func isReloadable(key string) bool {
	for _, prefix := range reloadable {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}
