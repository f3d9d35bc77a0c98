package databases

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/go-sql-driver/mysql"
)

const (
	mysqlVariable  = "VEDETTE_TEST_MYSQL"
	mysqldVariable = "VEDETTE_TEST_MYSQLD"
)

// mysqlFlavor is MariaDB or MySQL, with the differences between them.
type mysqlFlavor struct {
	program    string
	initialize func(s *Server, program string) error // creates the system tables
	args       []string
}

func findMySQL() (mysqlFlavor, error) {
	if name := os.Getenv(mysqldVariable); name != "" {
		program, err := exec.LookPath(name)
		if err != nil {
			return mysqlFlavor{}, fmt.Errorf("%s must name the program of a MySQL server: %w", mysqldVariable, err)
		}
		// The default directory for files does not exist or belongs to another user.
		return mysqlFlavor{program, (*Server).initMySQL, []string{"--secure-file-priv=NULL", "--mysqlx=OFF"}}, nil
	}
	program, err := find(mysqlVariable, "/usr/sbin/mariadbd", "/opt/homebrew/opt/mariadb/bin/mariadbd")
	return mysqlFlavor{program, (*Server).initMariaDB, nil}, err
}

func (s *Server) initMySQL(program string) error {
	return s.prepare(program, "--no-defaults", "--initialize-insecure", "--datadir="+filepath.Join(s.dir, "data"))
}

func (s *Server) initMariaDB(string) error {
	installProgram, err := find(mysqlVariable, "/usr/bin/mariadb-install-db", "/opt/homebrew/opt/mariadb/bin/mariadb-install-db")
	if err != nil {
		return err
	}
	currentUser, err := user.Current()
	if err != nil {
		return err
	}
	systemUser := currentUser.Username
	if s.account != nil {
		systemUser = "mysql"
	}
	return s.prepare(installProgram, "--no-defaults", "--datadir="+filepath.Join(s.dir, "data"), "--user="+systemUser,
		"--auth-root-authentication-method=normal", "--skip-test-db")
}

var errMySQLURL = errors.New("the URL must have the form mysql://USER:PASSWORD@HOST:3306/DATABASE, with special characters of the password written as %XX")

// MySQLDSN converts a URL to the driver's form. Its error does not contain the URL.
func MySQLDSN(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "mysql" || u.Hostname() == "" {
		return "", errMySQLURL
	}
	config, err := mysql.ParseDSN("/?" + u.RawQuery)
	if err != nil {
		return "", errMySQLURL
	}
	config.Net = "tcp"
	config.Addr = u.Host
	config.DBName = strings.TrimPrefix(u.Path, "/")
	config.User = u.User.Username()
	config.Passwd, _ = u.User.Password()
	return config.FormatDSN(), nil
}
