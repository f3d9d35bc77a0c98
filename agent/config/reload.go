package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

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
	if err := configfile.CheckLostFiles(c.report, next.report, "agent"); err != nil {
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
// only. Secrets are not compared; clouddriver.auth.token is reloaded if there was one before.
func (c *Config) NeedRestart(before *Config) []string {
	return slices.DeleteFunc(configfile.ChangedKeys(c.comparable(), before.comparable()), isReloadable)
}

// comparable returns the effective settings. Secrets are masked. Of the token that agents show to a
// proxy only counts whether there is one.
func (c *Config) comparable() []configfile.KeyValue {
	hasToken := strconv.FormatBool(c.Clouddriver.Auth.Token.Reveal() != "")
	settings := slices.DeleteFunc(c.Effective(), func(kv configfile.KeyValue) bool { return kv.Key == tokenKey })
	return append(settings, configfile.KeyValue{Key: tokenKey, Value: hasToken})
}

const tokenKey = "clouddriver.auth.token"

// InEffect returns the settings that are in effect in an agent that was started with one
// configuration and has adopted c.
func (c *Config) InEffect(started *Config) []configfile.KeyValue {
	settings := slices.DeleteFunc(c.Effective(), func(kv configfile.KeyValue) bool { return !isReloadable(kv.Key) })
	return append(settings, slices.DeleteFunc(started.Effective(), func(kv configfile.KeyValue) bool { return isReloadable(kv.Key) })...)
}

func isReloadable(key string) bool {
	for _, prefix := range reloadable {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// WithoutValues returns the text of an error of Load or Next for readers who must not see the values of
// the configuration.
func WithoutValues(err error) string { return configfile.WithoutValues(err, &Config{}) }
