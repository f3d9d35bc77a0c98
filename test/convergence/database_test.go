package convergence

import (
	"database/sql"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/vedette-io/vedette/test/proxy"
)

// database is what a server keeps its data in.
type database struct {
	name string
	url  string  // for the server, past the proxy
	sql  *sql.DB // for the oracle, past proxy and product

	write       func(query string) error
	proxy       *proxy.Proxy // nil of SQLite
	kill, start func()       // nil of SQLite
	disk        *disk        // nil but of SQLite
}

// databases are those that a test runs on.
var databases = map[string]func(t *testing.T) *database{"sqlite": newSQLite}

func databaseNames() []string {
	var names []string
	for name := range databases {
		if *oneDB == "" || *oneDB == name {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func newSQLite(t *testing.T) *database {
	d := newDisk(t)
	path := filepath.Join(d.dir, "vedette.db")
	write := func(query string) error {
		db := open(t, "sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
		_, err := db.ExecContext(t.Context(), query)
		return err
	}
	return &database{name: "sqlite", url: "sqlite:" + path, disk: d, write: write,
		sql: open(t, "sqlite", "file:"+path+"?mode=ro&_pragma=busy_timeout(5000)&_pragma=query_only(1)")}
}

func open(t *testing.T, driver, dsn string) *sql.DB {
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(2)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// behind puts a proxy before the server of a URL.
func behind(t *testing.T, text string) (*proxy.Proxy, string) {
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	p := proxy.New(t, u.Host)
	u.Host = p.Address()
	return p, u.String()
}

// disk is a directory that can be full.
type disk struct {
	t       *testing.T
	dir     string
	mounted bool // a small file system of its own, which takes root
}

const diskSize = 64 << 20

func newDisk(t *testing.T) *disk {
	d := &disk{t: t, dir: filepath.Join(t.TempDir(), "disk")}
	if err := os.Mkdir(d.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		t.Log("the full disk is left out: mounting a small file system takes root")
		return d
	}
	if err := syscall.Mount("tmpfs", d.dir, "tmpfs", 0, "size=64m"); err != nil {
		t.Logf("the full disk is left out: mount: %v", err)
		return d
	}
	d.mounted = true
	t.Cleanup(func() {
		if err := syscall.Unmount(d.dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return d
}

func (d *disk) ballast() string { return filepath.Join(d.dir, "ballast") }

// fill leaves no byte free.
func (d *disk) fill() {
	f, err := os.Create(d.ballast())
	if err != nil {
		d.t.Error(err)
		return
	}
	defer f.Close()
	block := make([]byte, 64<<10)
	for size := 0; size < 2*diskSize; size += len(block) {
		if _, err := f.Write(block); err != nil {
			return // no space left, as was the aim
		}
	}
	d.t.Errorf("%s does not fill up", d.dir)
}

func (d *disk) free() {
	if err := os.Remove(d.ballast()); err != nil {
		d.t.Error(err)
	}
}
