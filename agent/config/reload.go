package config

import (
	"slices"
	"strconv"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/configload"
)

// Next loads the configuration again from where c was loaded, as configload.Next. The names that c has by
// default stay, because they must not change while the agent runs.
func (c *Config) Next() (*Config, []configfile.File, error) {
	next, files, err := configload.Next(c, c.source.load, "agent")
	if err != nil {
		return nil, files, err
	}
	if !next.Report.IsSet("agentId") {
		next.AgentID = c.AgentID
	}
	if !next.Report.IsSet("zoneId") {
		next.ZoneID = c.ZoneID
	}
	return next, files, nil
}

// Adopt makes c the successor of the configuration whose Next it is, which must not be used anymore. If
// accounts were rejected, those before stay in effect, and so do the files with their secrets.
func (c *Config) Adopt() error {
	if len(c.RejectedAccounts) > 0 {
		c.Loader.AdoptKeepingFiles()
		return nil
	}
	return c.Loaded.Adopt()
}

// liveKeys are the settings that can change while the agent runs.
var liveKeys = configload.LiveKeys{"logging.level", "kubernetes.accounts", "kubernetes.noProxy", "secrets.", "spring."}

// NeedRestart returns the keys whose values differ from before and which count from the next start on
// only. Secrets are not compared; clouddriver.auth.token is reloaded if there was one before.
func (c *Config) NeedRestart(before *Config) []string {
	return liveKeys.NeedRestart(c.comparable(), before.comparable())
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
	return liveKeys.InEffect(started.Effective(), c.Effective())
}
