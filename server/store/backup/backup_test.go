package backup_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store"
	"github.com/vedette-io/vedette/server/store/backup"
	"github.com/vedette-io/vedette/server/store/read"
	"github.com/vedette-io/vedette/server/store/sqldb"
	"github.com/vedette-io/vedette/server/store/storetest"
)

// openDatabase returns a store and its file.
func openDatabase(t *testing.T) (*storetest.Fixture, string) {
	path := filepath.Join(t.TempDir(), "vedette.db")
	return storetest.NewFixtureWith(t, sqldb.Config{URL: "sqlite:" + path}), path
}

// openBackedUp returns a store with Pods of version 1, its file, and a backup of it.
func openBackedUp(t *testing.T, pods int) (f *storetest.Fixture, path string, content []byte) {
	t.Helper()
	f, path = openDatabase(t)
	f.CommitPods(1, storetest.PodsAt(0, pods, 1)...)
	var b bytes.Buffer
	if _, err := backup.Stream(t.Context(), path, &b); err != nil {
		t.Fatal(err)
	}
	return f, path, b.Bytes()
}

// podVersions returns the versions of the Pods in the database at a path.
func podVersions(t *testing.T, path string) (versions map[string]int, mark vedette.Mark) {
	t.Helper()
	s, err := store.Open(t.Context(), sqldb.Config{URL: "sqlite:" + path})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	page, err := s.Objects(t.Context(), read.Query{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	feeds, err := s.Feeds(t.Context(), "prod")
	if err != nil {
		t.Fatal(err)
	}
	versions = map[string]int{}
	for _, o := range page.Items {
		versions[o.ResourceVersion]++
	}
	return versions, feeds[0].Mark
}

// TestBackupIsOneState makes backups while all objects change together.
func TestBackupIsOneState(t *testing.T) {
	f, path := openDatabase(t)
	const pods = 20
	f.CommitPods(1, storetest.PodsAt(0, pods, 1)...)
	var version atomic.Int64
	version.Store(1)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			next := int(version.Load()) + 1
			f.CommitPods(next, storetest.PodsAt(0, pods, next)...)
			version.Store(int64(next))
		}
	}()
	for round := range 5 {
		for before := version.Load(); version.Load() < before+3; { // the file has a journal
			if _, err := f.Feeds(t.Context(), "prod"); err != nil {
				t.Fatal(err)
			}
		}
		copied := filepath.Join(t.TempDir(), "backup.db")
		earliest := version.Load()
		if round%2 == 0 {
			if _, err := backup.Write(t.Context(), path, copied); err != nil {
				t.Fatal(err)
			}
		} else {
			var content bytes.Buffer
			if size, err := backup.Stream(t.Context(), path, &content); err != nil || size != int64(content.Len()) {
				t.Fatalf("got %d bytes, %v, want %d", size, err, content.Len())
			}
			if err := os.WriteFile(copied, content.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if info, err := os.Stat(copied); err != nil || info.Mode() != 0o600 {
			t.Errorf("got %v, %v, want a file with mode 0600", info, err)
		}
		versions, mark := podVersions(t, copied)
		if len(versions) != 1 || versions[string(mark)] != pods {
			t.Errorf("got the versions %v with the mark %s, want one version of all Pods", versions, mark)
		}
		if at, err := strconv.ParseInt(string(mark), 10, 64); err != nil || at < earliest {
			t.Errorf("got the mark %s, want %d or later", mark, earliest)
		}
	}
	stop()
	<-ended
	expectFiles(t, filepath.Dir(path), "vedette.db", "vedette.db-shm", "vedette.db-wal", "vedette.db.lock")
}

func expectFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("got the files %q, want %q", got, want)
	}
}

// TestRestoreReplacesTheDatabase restores a backup over a database with a journal, which must not be applied to the backup.
func TestRestoreReplacesTheDatabase(t *testing.T) {
	f, path, content := openBackedUp(t, 3)
	f.CommitPods(2, storetest.PodsAt(0, 3, 2)...)
	_, err := backup.Restore(t.Context(), path, bytes.NewReader(content))
	if vedette.KindOf(err) != vedette.Conflict {
		t.Errorf("got %v while a server uses the database, want Conflict", err)
	}
	crashed := copyFiles(t, path) // with a journal, as after kill -9
	if _, err := backup.Restore(t.Context(), crashed, bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	expectFiles(t, filepath.Dir(crashed), "vedette.db", "vedette.db.lock", "vedette.db.replaced", "vedette.db.replaced-shm", "vedette.db.replaced-wal")
	if versions, mark := podVersions(t, crashed); versions["1"] != 3 || mark != "1" {
		t.Errorf("got %v with the mark %s, want the backup", versions, mark)
	}
	if versions, mark := podVersions(t, crashed+".replaced"); versions["2"] != 3 || mark != "2" {
		t.Errorf("got %v with the mark %s, want what was replaced", versions, mark)
	}
}

// copyFiles copies a database with its journals to another directory.
func copyFiles(t *testing.T, path string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), filepath.Base(path))
	for _, suffix := range []string{"", "-wal", "-shm"} {
		content, err := os.ReadFile(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to+suffix, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// TestRestoreAfterAKill repeats a restore that was killed after it had moved the database away.
func TestRestoreAfterAKill(t *testing.T) {
	f, path, content := openBackedUp(t, 3)
	f.CommitPods(2, storetest.PodsAt(0, 3, 2)...)
	killed := copyFiles(t, path)
	if err := os.Rename(killed, killed+".replaced"); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Restore(t.Context(), killed, bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	if versions, _ := podVersions(t, killed); versions["1"] != 3 {
		t.Errorf("got %v, want the backup", versions)
	}
	if versions, _ := podVersions(t, killed+".replaced"); versions["2"] != 3 {
		t.Errorf("got %v, want what was replaced, with its journal", versions)
	}
}

// TestRestoreRefusesWhatIsNoBackup checks that the database stays as it is.
func TestRestoreRefusesWhatIsNoBackup(t *testing.T) {
	_, path, content := openBackedUp(t, 50)
	damaged := bytes.Clone(content)
	for i := range 4096 {
		damaged[len(damaged)/2+i] ^= 0x55
	}
	broken := errors.New("broken pipe")
	for name, tt := range map[string]struct {
		from io.Reader
		want string
	}{
		"nothing": {strings.NewReader(""), "empty"},
		"text":    {strings.NewReader("hello"), "not a database of SQLite"},
		"half":    {bytes.NewReader(content[:len(content)/2]), "damaged"},
		"changed": {bytes.NewReader(damaged), "damaged"},
		"a part":  {bytes.NewReader(changeSQLite(t, content, "DROP TABLE operation_changes")), "lacks the table operation_changes"},
		"a trigger": {bytes.NewReader(changeSQLite(t, content,
			"CREATE TRIGGER later AFTER INSERT ON operations BEGIN DELETE FROM operations; END")), "the trigger later"},
		"a view":           {bytes.NewReader(changeSQLite(t, content, "CREATE VIEW pods AS SELECT 1")), "the view pods"},
		"another database": {bytes.NewReader(makeSQLite(t, "CREATE TABLE a (b)")), "not one of vedette-server"},
		"a newer schema": {bytes.NewReader(changeSQLite(t, content,
			"INSERT INTO schema_version (version_id, is_applied) SELECT MAX(version_id) + 1000, 1 FROM schema_version")), "a newer server"},
		"an error": {io.MultiReader(bytes.NewReader(content[:1000]), iotest.ErrReader(broken)), "broken pipe"},
	} {
		t.Run(name, func(t *testing.T) {
			target := copyFiles(t, path)
			_, err := backup.Restore(t.Context(), target, tt.from)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
			expectFiles(t, filepath.Dir(target), "vedette.db", "vedette.db-shm", "vedette.db-wal", "vedette.db.lock")
			if versions, _ := podVersions(t, target); versions["1"] != 50 {
				t.Errorf("got %v, want the database as it was", versions)
			}
		})
	}
}

func makeSQLite(t *testing.T, statement string) []byte { return changeSQLite(t, nil, statement) }

// changeSQLite returns the file of a database after a statement.
func changeSQLite(t *testing.T, content []byte, statement string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "other.db")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	changed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

// TestRestoreOfOtherVersions restores backups from before an upgrade, of each version of the schema, and one of a newer server whose schema this one
// can use.
func TestRestoreOfOtherVersions(t *testing.T) {
	_, path, content := openBackedUp(t, 1)
	target := copyFiles(t, path)
	for version := 1; ; version++ {
		like, old := filepath.Join(t.TempDir(), "like.db"), filepath.Join(t.TempDir(), "old.db")
		named := makeSQLite(t, "CREATE TABLE schema_version (version_id INTEGER); INSERT INTO schema_version VALUES ("+strconv.Itoa(version)+")")
		if err := os.WriteFile(like, named, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := sqldb.CreateLike(t.Context(), old, like); err != nil {
			t.Fatal(err)
		}
		if _, err := backup.RestoreFile(t.Context(), target, old); err != nil {
			t.Fatalf("version %d: %v", version, err)
		}
		detail, err := sqldb.Probe(t.Context(), sqldb.Config{URL: "sqlite:" + target})
		if err != nil || !strings.Contains(detail, "schema version "+strconv.Itoa(version)) {
			t.Fatalf("version %d: got %s, %v", version, detail, err)
		}
		if !strings.Contains(detail, "migrates it") {
			break // this program's own
		}
	}
	newer := changeSQLite(t, content, `INSERT INTO schema_version (version_id, is_applied) SELECT MAX(version_id) + 1, 1 FROM schema_version;
		INSERT INTO schema_compatibility (version, compatible_from) SELECT MAX(version_id), MAX(version_id) - 1 FROM schema_version; CREATE TABLE later (a)`)
	if _, err := backup.Restore(t.Context(), target, bytes.NewReader(newer)); err != nil {
		t.Errorf("a newer schema that this server can use: %v", err)
	}
}

// TestRestoreWithJournals restores copies of a running server's files, of which the last changes are in a journal, and then what that replaced.
func TestRestoreWithJournals(t *testing.T) {
	f, path, _ := openBackedUp(t, 3)
	f.CommitPods(2, storetest.PodsAt(0, 3, 2)...)
	snapshot := copyFiles(t, path)
	if info, err := os.Stat(snapshot + "-wal"); err != nil || info.Size() == 0 {
		t.Fatalf("the snapshot has no journal: %v", err)
	}
	_, target, _ := openBackedUp(t, 5)
	target = copyFiles(t, target)
	if _, err := backup.RestoreFile(t.Context(), target, snapshot); err != nil {
		t.Fatal(err)
	}
	if versions, mark := podVersions(t, copyFiles(t, snapshot)); versions["2"] != 3 || mark != "2" {
		t.Errorf("the backup has %v with the mark %s, want it as it was", versions, mark)
	}
	expectFiles(t, filepath.Dir(target), "vedette.db", "vedette.db.lock", "vedette.db.replaced", "vedette.db.replaced-shm", "vedette.db.replaced-wal")
	if _, err := backup.RestoreFile(t.Context(), target, target+".replaced"); err != nil {
		t.Fatal(err)
	}
	if versions, mark := podVersions(t, target); versions["1"] != 5 || mark != "1" {
		t.Errorf("got %v with the mark %s, want what was there before", versions, mark)
	}
	if versions, mark := podVersions(t, target+".replaced"); versions["2"] != 3 || mark != "2" {
		t.Errorf("got %v with the mark %s, want all of the snapshot", versions, mark)
	}
}

// TestBackupReplacesOnlyFiles checks that devices, pipes and links stay what they are: root may name any.
func TestBackupReplacesOnlyFiles(t *testing.T) {
	_, path := openDatabase(t)
	dir := t.TempDir()
	link, below := filepath.Join(dir, "link"), filepath.Join(dir, "below")
	if err := errors.Join(os.Symlink(os.DevNull, link), os.Mkdir(below, 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{link, below, os.DevNull} {
		before, err := os.Lstat(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := backup.Write(t.Context(), path, file); vedette.KindOf(err) != vedette.Invalid || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: got %v, want Invalid", file, err)
		}
		if after, err := os.Lstat(file); err != nil || !os.SameFile(before, after) {
			t.Errorf("%s: got %v, %v, want it as it was", file, after, err)
		}
	}
	expectFiles(t, dir, "below", "link")
}

// TestRestoreReadsOnlyFiles checks that what is not a file is refused before a server is kept from starting.
func TestRestoreReadsOnlyFiles(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{fifo: "is not a regular file", dir: "is not a regular file", filepath.Join(dir, "missing"): "no such file"} {
		if _, err := backup.RestoreFile(t.Context(), filepath.Join(dir, "vedette.db"), file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", file, err, want)
		}
	}
	expectFiles(t, dir, "fifo")
}

// TestStalledPipesEndWithTheContext checks that neither command waits for the other end of a pipe when it is asked to end, and that it leaves
// nothing.
func TestStalledPipesEndWithTheContext(t *testing.T) {
	_, path, content := openBackedUp(t, 3)
	target := copyFiles(t, path)
	interrupted := errors.New("interrupted")
	for name, run := range map[string]func(ctx context.Context, r *io.PipeReader, w *io.PipeWriter, begun func()) error{
		"backup": func(ctx context.Context, r *io.PipeReader, w *io.PipeWriter, begun func()) error {
			go func() {
				_, err := io.ReadFull(r, make([]byte, 1000))
				begun()
				if err != nil {
					t.Error(err)
				}
			}()
			_, err := backup.Stream(ctx, path, w)
			return err
		},
		"restore": func(ctx context.Context, r *io.PipeReader, w *io.PipeWriter, begun func()) error {
			go func() {
				_, err := w.Write(content[:1000])
				begun()
				if err != nil {
					t.Error(err)
				}
			}()
			_, err := backup.Restore(ctx, target, r)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			r, w := io.Pipe()
			defer r.Close()
			defer w.Close()
			ended := make(chan error)
			go func() { ended <- run(ctx, r, w, func() { cancel(interrupted) }) }()
			select {
			case err := <-ended:
				if !errors.Is(err, interrupted) {
					t.Errorf("got %v, want the cause of the end", err)
				}
			case <-time.After(time.Minute):
				t.Fatal("it waits for the pipe")
			}
		})
	}
	for _, file := range []string{path, target} {
		expectFiles(t, filepath.Dir(file), "vedette.db", "vedette.db-shm", "vedette.db-wal", "vedette.db.lock")
	}
}

// TestBackupNeedsADatabase checks that a backup creates none, and that it does not replace the database.
func TestBackupNeedsADatabase(t *testing.T) {
	_, path := openDatabase(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "old.db-wal"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ path, file, want string }{
		"no database":  {filepath.Join(dir, "vedette.db"), filepath.Join(dir, "backup.db"), "no database to back up"},
		"the database": {path, path, "the database itself"},
		"its journal":  {path, path + "-wal", "belongs to the database itself"},
		"its lock":     {path, path + ".lock", "belongs to the database itself"},
		"a journal":    {path, filepath.Join(dir, "old.db"), "old.db-wal, which would be applied"},
		"no directory": {path, filepath.Join(dir, "missing", "backup.db"), "cannot write to"},
	} {
		if _, err := backup.Write(t.Context(), tt.path, tt.file); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, tt.want)
		}
	}
	expectFiles(t, dir, "old.db-wal")
}
