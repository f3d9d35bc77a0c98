package config

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/vedette-io/vedette/internal/configfile"
)

// SQL configures the database.
type SQL struct {
	// URL of the database: sqlite:/path, postgres://user@host:5432/name or mysql://user@host:3306/name (MySQL
	// and MariaDB). Default: SQLite in dataDir.
	URL DatabaseURL `config:"url"`
	// User, if the URL does not contain one.
	User string `config:"user"`
	// Password, if the URL does not contain one.
	Password configfile.Secret `config:"password"`
	// Databases that follow the one of url: streaming replicas of PostgreSQL, or other nodes of a Galera cluster. Views are read
	// from one that has all commits, and from the primary while none has. The forms are those of url; user and password are used, too.
	ReadReplicas []DatabaseURL `config:"readReplicas"`
	// Further databases, over which accounts are spread: PostgreSQL, MySQL or MariaDB, as that of url must be then. All servers name
	// the same. One that is added takes new accounts; one that has accounts cannot be left out (docs/scaling.md).
	Shards []Shard `config:"shards"`
	// Clouddriver's form. The pool named default is used, or the one with default: true. Keys of a pool:
	// jdbcUrl, user, password, default. Its other keys have no effect.
	ConnectionPools map[string]ConnectionPool `config:"connectionPools"`
	// The server always uses a database.
	Enabled bool `config:"enabled,ignored" default:"true"`
	// sql.user changes the schema and needs the rights for it.
	Migration configfile.Ignored `config:"migration,ignored"`
	// The server has no cache beside the database.
	Cache configfile.Ignored `config:"cache,ignored"`
	// The server watches; nothing needs a schedule.
	Scheduler configfile.Ignored `config:"scheduler,ignored"`
	// Tasks are always kept in the database.
	TaskRepository configfile.Ignored `config:"taskRepository,ignored"`
	// accounts.gracePeriod removes accounts without agents.
	UnknownAgentCleanupAgent configfile.Ignored `config:"unknown-agent-cleanup-agent,ignored"`
	// Failed transactions are always retried.
	TransactionRetry configfile.Ignored `config:"transactionRetry,ignored"`
	// Failed transactions are always retried.
	Retries configfile.Ignored `config:"retries,ignored"`
}

// Shard is a further database.
type Shard struct {
	// Name of the database, of at most 63 lowercase letters, digits and hyphens. It never changes.
	Name string `config:"name"`
	// URL of an empty database, in the form of sql.url.
	URL DatabaseURL `config:"url"`
	// User, if the URL does not contain one. Default: sql.user
	User string `config:"user"`
	// Password, if the URL does not contain one. Default: sql.password
	Password configfile.Secret `config:"password"`
	// Databases that follow this one, as in sql.readReplicas.
	ReadReplicas []DatabaseURL `config:"readReplicas"`
}

// ConnectionPool is one of Clouddriver's connection pools.
type ConnectionPool struct {
	// Use this pool if none is named default.
	Default bool `config:"default" default:"false"`
	// jdbc:mysql://host:3306/name, jdbc:mariadb:... or jdbc:postgresql:...
	JDBCURL DatabaseURL `config:"jdbcUrl"`
	// User of the database.
	User string `config:"user"`
	// Password of the user.
	Password configfile.Secret `config:"password"`
	// The URL contains the dialect.
	Dialect string `config:"dialect,ignored"`
	// The server does not use JDBC.
	Driver string `config:"driver,ignored"`
	// The server chooses the number of connections.
	MaxPoolSize int `config:"maxPoolSize,ignored"`
	// The server chooses the number of connections.
	MinIdle int `config:"minIdle,ignored"`
	// The server replaces connections that fail.
	MaxLifetimeMs int `config:"maxLifetimeMs,ignored"`
	// The server has limits of its own.
	ConnectionTimeoutMs int `config:"connectionTimeoutMs,ignored"`
	// The server has limits of its own.
	IdleTimeoutMs int `config:"idleTimeoutMs,ignored"`
	// The server has limits of its own.
	ValidationTimeoutMs int `config:"validationTimeoutMs,ignored"`
}

// DatabaseURL is the URL of a database, which may contain a password. It is printed and logged with
// the password masked; Reveal returns all of it. The zero value is empty.
type DatabaseURL struct{ secret configfile.Secret }

// NewDatabaseURL returns a DatabaseURL for a URL.
func NewDatabaseURL(address string) DatabaseURL { return DatabaseURL{configfile.NewSecret(address)} }

// Reveal returns the URL with its password.
func (u DatabaseURL) Reveal() string { return u.secret.Reveal() }

// UnmarshalText accepts any text. The URL is checked later, by code that does not quote it in
// errors.
func (u *DatabaseURL) UnmarshalText(text []byte) error {
	*u = NewDatabaseURL(strings.TrimSpace(string(text)))
	return nil
}

// Hidden keeps the URL out of configfile's messages.
func (DatabaseURL) Hidden() {}

// ConfigTypeName implements configfile's name of a type.
func (DatabaseURL) ConfigTypeName() string { return "URL" }

// String returns the URL with its password masked, or only a mask if the text is not a URL. It shows
// only the parameters about TLS.
func (u DatabaseURL) String() string {
	text := u.Reveal()
	if text == "" || strings.HasPrefix(text, "sqlite:") {
		return text
	}
	jdbc := strings.HasPrefix(text, "jdbc:")
	parsed, err := url.Parse(strings.TrimPrefix(text, "jdbc:"))
	if err != nil || parsed.Host == "" || parsed.Scheme == "" {
		return masked
	}
	shown := parsed.Scheme + "://"
	if jdbc {
		shown = "jdbc:" + shown
	}
	if parsed.User.Username() != "" {
		shown += parsed.User.Username()
		if _, ok := parsed.User.Password(); ok {
			shown += ":" + masked
		}
		shown += "@"
	}
	shown += parsed.Host + parsed.Path
	if parsed.RawQuery != "" {
		shown += "?" + maskParameters(parsed.RawQuery)
	}
	return shown
}

// masked stands for a secret.
const masked = "********"

// tlsParameters are the parameters of URLs that say how a connection uses TLS, and tlsValues what
// they may be, in lower case. Any other parameter may be a password.
var (
	tlsParameters = []string{"sslmode", "ssl", "usessl", "requiressl", "verifyservercertificate", "tls"}
	tlsValues     = []string{"disable", "disabled", "allow", "prefer", "preferred", "require", "required", "trust", "verify-ca", "verify_ca",
		"verify-full", "verify_identity", "true", "false", "skip-verify"}
)

// maskParameters returns the parameters of a URL that say how it uses TLS, and a mask for the others.
func maskParameters(query string) string {
	var shown []string
	parameters := strings.Split(query, "&")
	for _, parameter := range parameters {
		key, value, _ := strings.Cut(parameter, "=")
		if slices.Contains(tlsParameters, strings.ToLower(key)) && slices.Contains(tlsValues, strings.ToLower(value)) {
			shown = append(shown, parameter)
		}
	}
	if len(shown) < len(parameters) {
		shown = append(shown, masked)
	}
	return strings.Join(shown, "&")
}

// Format prints the masked form for every verb.
func (u DatabaseURL) Format(f fmt.State, _ rune) { fmt.Fprint(f, u.String()) }

// LogValue returns the masked form.
func (u DatabaseURL) LogValue() slog.Value { return slog.StringValue(u.String()) }

// MarshalText returns the masked form.
func (u DatabaseURL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UseDataDir sets the directory of the embedded database, for a command-line flag. It has no effect if
// another database is configured.
func (c *Config) UseDataDir(dir string) {
	c.DataDir, c.location.dataDir = dir, dir
	if _, pool := c.SQL.pool(); pool == "" && c.SQL.URL.Reveal() == "" {
		c.chooseDatabase()
	}
}

// Database returns the database to use, for example "sqlite:/var/lib/vedette/vedette.db",
// "postgres://user:password@host:5432/name?sslmode=require" or
// "mysql://user:password@host:3306/name?tls=true". Its parameters are those of pgx or
// go-sql-driver.
func (c *Config) Database() DatabaseURL { return c.database }

// chooseDatabase sets the database from the form that the user has chosen. Problems do not quote
// the URL.
func (c *Config) chooseDatabase() {
	key := "sql.url"
	raw := c.SQL.URL.Reveal()
	user := c.SQL.User
	password := c.SQL.Password.Reveal()
	if pool, name := c.SQL.pool(); name != "" {
		if raw != "" {
			c.Report.AddAt("sql.url", "%q and %q both name a database: remove one of them", "sql.url", "sql.connectionPools."+name+".jdbcUrl")
			return
		}
		key, raw = "sql.connectionPools."+name+".jdbcUrl", pool.JDBCURL.Reveal()
		user, password = cmp.Or(pool.User, user), cmp.Or(pool.Password.Reveal(), password)
	}
	if raw == "" {
		c.database = NewDatabaseURL("sqlite:" + filepath.Join(c.DataDir, "vedette.db"))
		c.readReplicas("", "")
		c.chooseShards("", "")
		return
	}
	found, dropped, err := databaseURL(raw, user, password)
	if err != nil {
		c.Report.Checker().Problem(key, ": %s", err)
		return
	}
	c.database = found
	c.readReplicas(user, password)
	c.chooseShards(user, password)
	if len(dropped) > 0 {
		c.Report.Checker().Notice(key, "JDBC parameters without a counterpart are ignored: %s", strings.Join(dropped, ", "))
	}
}

// readReplicas sets the read replicas.
func (c *Config) readReplicas(user, password string) {
	c.replicas = c.replicasOf("sql.readReplicas", c.database, c.SQL.ReadReplicas, user, password)
}

// replicasOf returns the URLs of the replicas of a database. They are of the same kind as it.
func (c *Config) replicasOf(key string, database DatabaseURL, addresses []DatabaseURL, user, password string) (urls []string) {
	kind, _, _ := strings.Cut(database.Reveal(), ":")
	for i, address := range addresses {
		entry := fmt.Sprintf("%s[%d]", key, i)
		if kind == "sqlite" {
			c.Report.AddAt(key, "%q: SQLite has no replicas: remove it, or set sql.url to a PostgreSQL or MariaDB database", entry)
			continue
		}
		found, _, err := databaseURL(address.Reveal(), user, password)
		if err != nil {
			c.Report.AddAt(key, "%q: %s", entry, err)
			continue
		}
		if scheme, _, _ := strings.Cut(found.Reveal(), ":"); scheme != kind {
			c.Report.AddAt(key, "%q: it must be a %s URL, because the database is one", entry, kind)
			continue
		}
		urls = append(urls, found.Reveal())
	}
	return urls
}

// shardName is the form of the name of a further database.
var shardName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// chooseShards sets the further databases. Problems do not quote a URL.
func (c *Config) chooseShards(user, password string) {
	names := map[string]bool{}
	for i, s := range c.SQL.Shards {
		entry := fmt.Sprintf("sql.shards[%d]", i)
		atURL, atName := entry+".url", entry+".name" // where each is in the file
		if s.Name == "" {
			atName = atURL
		}
		user, password := cmp.Or(s.User, user), cmp.Or(s.Password.Reveal(), password)
		found, _, err := databaseURL(s.URL.Reveal(), user, password)
		switch {
		case isSQLite(c.database):
			c.Report.AddAt(atURL, "%q: SQLite is one file for one server: set sql.url to a PostgreSQL, MariaDB or MySQL database, or remove this one", entry)
		case !shardName.MatchString(s.Name):
			c.Report.AddAt(atName, "%q: the name %.100q must consist of 1 to 63 lowercase letters, digits and hyphens between them", entry, s.Name)
		case names[s.Name]:
			c.Report.AddAt(atName, "%q: the name %s is used twice: each database needs one of its own", entry, s.Name)
		case err != nil:
			c.Report.AddAt(atURL, "%q: %s", entry, err)
		case isSQLite(found):
			c.Report.AddAt(atURL, "%q: a file of SQLite is for one server: name a PostgreSQL, MariaDB or MySQL database", entry)
		default:
			c.shards = append(c.shards, ShardDatabase{s.Name, found, c.replicasOf(entry+".readReplicas", found, s.ReadReplicas, user, password)})
		}
		names[s.Name] = true
	}
}

func isSQLite(database DatabaseURL) bool { return strings.HasPrefix(database.Reveal(), "sqlite:") }

// ShardDatabase is a further database as it is used.
type ShardDatabase struct {
	Name     string
	URL      DatabaseURL
	Replicas []string // URLs with passwords
}

// Shards returns the databases over which accounts are spread beside that of Database.
func (c *Config) Shards() []ShardDatabase { return c.shards }

// Replicas returns the URLs of the read replicas, with their passwords.
func (c *Config) Replicas() []string { return c.replicas }

// pool returns Clouddriver's default pool and its name; "" if there is none.
func (s SQL) pool() (ConnectionPool, string) {
	if pool, ok := s.ConnectionPools["default"]; ok && pool.JDBCURL.Reveal() != "" {
		return pool, "default"
	}
	for _, name := range slices.Sorted(maps.Keys(s.ConnectionPools)) {
		if pool := s.ConnectionPools[name]; pool.Default && pool.JDBCURL.Reveal() != "" {
			return pool, name
		}
	}
	return ConnectionPool{}, ""
}
