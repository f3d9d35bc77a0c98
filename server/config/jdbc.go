package config

import (
	"cmp"
	"errors"
	"net/url"
	"slices"
	"strings"
)

var (
	errInvalidURL = errors.New("this is not the URL of a database: use sqlite:/path, postgres://user@host:5432/name or mysql://user@host:3306/name")
	errNoHost     = errors.New("the URL has no host: use postgres://host:5432/name or mysql://host:3306/name")
	errNoName     = errors.New("the URL has no database name: use sqlite:/path, postgres://host:5432/name or mysql://host:3306/name")
	errVariant    = errors.New("this form of a JDBC URL is not supported: use jdbc:mysql://host:3306/name, jdbc:mariadb://host:3306/name or jdbc:postgresql://host:5432/name")
)

// databaseURL converts a URL in our form or in JDBC's to our form. It adds user and password if the
// URL has none, and returns the names of the JDBC parameters that it dropped. Its errors do not
// quote the URL, because any part of it may be a password.
func databaseURL(raw, user, password string) (_ DatabaseURL, dropped []string, _ error) {
	if after, ok := strings.CutPrefix(raw, "sqlite:"); ok {
		if after == "" {
			return DatabaseURL{}, nil, errNoName
		}
		return NewDatabaseURL(raw), nil, nil
	}
	inner, jdbc := strings.CutPrefix(raw, "jdbc:")
	u, err := url.Parse(inner)
	if err != nil {
		return DatabaseURL{}, nil, errInvalidURL
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return DatabaseURL{}, nil, errInvalidURL
	}
	scheme, known := schemes[u.Scheme]
	switch {
	case jdbc && (!known || u.Opaque != "" || strings.Contains(u.Host, ",")):
		return DatabaseURL{}, nil, errVariant
	case !known || u.Opaque != "":
		return DatabaseURL{}, nil, errInvalidURL
	case u.Hostname() == "":
		return DatabaseURL{}, nil, errNoHost
	case strings.Trim(u.Path, "/") == "":
		return DatabaseURL{}, nil, errNoName
	}
	u.Scheme = scheme
	if jdbc {
		user, password = cmp.Or(user, query.Get("user")), cmp.Or(password, query.Get("password"))
		query, dropped, err = translate(scheme, query)
		if err != nil {
			return DatabaseURL{}, nil, err
		}
	}
	u.User = userinfo(u.User, user, password)
	u.RawQuery = query.Encode()
	return NewDatabaseURL(u.String()), dropped, nil
}

var schemes = map[string]string{
	"postgres": "postgres", "postgresql": "postgres", "mysql": "mysql", "mariadb": "mysql",
}

func userinfo(existing *url.Userinfo, user, password string) *url.Userinfo {
	user = cmp.Or(existing.Username(), user)
	if p, ok := existing.Password(); ok {
		password = p
	}
	switch {
	case password != "":
		return url.UserPassword(user, password)
	case user != "":
		return url.User(user)
	}
	return nil
}

// translate converts JDBC's parameters to those of our drivers. Parameters that secure the
// connection are never dropped: an unknown value is an error.
func translate(scheme string, from url.Values) (to url.Values, dropped []string, err error) {
	to = url.Values{}
	tls := mysqlTLS
	if scheme == "postgres" {
		tls = postgresTLS
	}
	if err := tls(from, to); err != nil {
		return nil, nil, err
	}
	for name := range from {
		switch {
		case slices.Contains(handledParameters, name):
		case scheme == "postgres" && postgresParameters[name] != "":
			to.Set(postgresParameters[name], from.Get(name))
		default:
			dropped = append(dropped, name)
		}
	}
	slices.Sort(dropped)
	return to, dropped, nil
}

// handledParameters are the parameters that other functions handle.
var handledParameters = []string{"user", "password", "useSSL", "requireSSL", "verifyServerCertificate", "sslMode", "ssl", "sslmode"}

// postgresParameters maps parameters to their names in pgx.
var postgresParameters = map[string]string{
	"currentSchema": "search_path", "ApplicationName": "application_name", "connectTimeout": "connect_timeout",
	"sslrootcert": "sslrootcert", "sslcert": "sslcert", "sslkey": "sslkey",
}

// mysqlTLS sets go-sql-driver's tls from Connector/J's sslMode, or from its three older parameters.
func mysqlTLS(from, to url.Values) error {
	mode := strings.ToUpper(strings.ReplaceAll(from.Get("sslMode"), "-", "_"))
	isTrue := func(name string) bool { return strings.EqualFold(from.Get(name), "true") }
	switch {
	case mode != "":
	case !from.Has("useSSL"):
		return nil
	case !isTrue("useSSL"):
		mode = "DISABLED"
	case isTrue("verifyServerCertificate"):
		mode = "VERIFY_CA"
	case isTrue("requireSSL"):
		mode = "REQUIRED"
	default:
		mode = "PREFERRED"
	}
	tls, ok := map[string]string{
		"DISABLED": "false", "DISABLE": "false", "PREFERRED": "preferred", "REQUIRED": "skip-verify", "TRUST": "skip-verify",
		"VERIFY_CA": "true", "VERIFY_IDENTITY": "true", "VERIFY_FULL": "true",
	}[mode]
	if !ok {
		return errors.New("unknown value of sslMode")
	}
	to.Set("tls", tls)
	return nil
}

// postgresTLS sets sslmode, for which pgx accepts the same values. As in the JDBC driver, ssl=true
// means verify-full.
func postgresTLS(from, to url.Values) error {
	mode := from.Get("sslmode")
	if mode == "" {
		mode = from.Get("sslMode")
	}
	if mode == "" && from.Has("ssl") {
		mode = "verify-full"
		if strings.EqualFold(from.Get("ssl"), "false") {
			mode = "disable"
		}
	}
	if mode == "" {
		return nil
	}
	if !slices.Contains([]string{"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}, mode) {
		return errors.New("unknown value of sslmode")
	}
	to.Set("sslmode", mode)
	return nil
}
