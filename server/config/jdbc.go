package config

import (
	"cmp"
	"errors"
	"net/url"
	"slices"
	"strings"
)

var (
	errInvalidURL = errors.New("this is no URL of a database: it must look like sqlite:/path, postgres://user@host:5432/name or mysql://user@host:3306/name")
	errNoHost     = errors.New("the URL names no host")
	errNoName     = errors.New("the URL names no database: it must end in one, as in mysql://host:3306/name")
	errVariant    = errors.New("this variant of a JDBC URL is not supported: jdbc:mysql://host:3306/name, jdbc:mariadb:// and jdbc:postgresql:// are")
)

// databaseURL turns a URL in our form or in JDBC's into ours, with user and
// password filled in where it has none, and names the parameters of JDBC that it
// had to drop. Its errors quote nothing: a password may stand anywhere.
func databaseURL(raw, user, password string) (_ DatabaseURL, dropped []string, _ error) {
	if strings.HasPrefix(raw, "sqlite:") {
		if strings.TrimPrefix(raw, "sqlite:") == "" {
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
		if query, dropped, err = translate(scheme, query); err != nil {
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

// userinfo fills in what a URL does not say itself.
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

// translate turns JDBC's parameters into those of our drivers. What secures the
// connection is never dropped in silence: a value that we don't know is an error.
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

// handledParameters are parameters that other functions have dealt with.
var handledParameters = []string{"user", "password", "useSSL", "requireSSL", "verifyServerCertificate", "sslMode", "ssl", "sslmode"}

// postgresParameters are parameters that have another name with pgx, or the same.
var postgresParameters = map[string]string{
	"currentSchema": "search_path", "ApplicationName": "application_name", "connectTimeout": "connect_timeout",
	"sslrootcert": "sslrootcert", "sslcert": "sslcert", "sslkey": "sslkey",
}

// mysqlTLS sets go-sql-driver's tls by Connector/J's sslMode, or by the three
// older switches.
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
		return errors.New("the value of sslMode is not known")
	}
	to.Set("tls", tls)
	return nil
}

// postgresTLS sets sslmode, which pgx knows by the same words. ssl=true means a
// full check, as in the JDBC driver.
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
		return errors.New("the value of sslmode is not known")
	}
	to.Set("sslmode", mode)
	return nil
}
