package sqldb

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"

	"github.com/pressly/goose/v3"
)

// goMigrations returns the migrations of numbered files, in goose's format. goose could read the
// files itself, but takes a buffer of four megabytes for each line: with the race detector, whose
// pools lose buffers, each test that created a database spent a fifth of a second on that. The files
// cannot be parsed by goose once for all databases: its parser is internal, and keeps what it has parsed
// in a Provider, which is for one database. splitMigration rejects what it does not understand, and a
// test compares the schema with goose's own.
func goMigrations(files fs.FS) ([]*goose.Migration, error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, err
	}
	all := make([]*goose.Migration, len(names))
	for i, name := range names {
		version, err := goose.NumericComponent(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		statements, err := splitMigration(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if version > compatibilityVersion {
			from, err := parseCompatibleFrom(version, string(text))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			statements = append(statements, recordCompatibility(version, from)...)
		}
		all[i] = goose.NewGoMigration(version, &goose.GoFunc{RunTx: runMigration(name, statements)}, nil)
	}
	return all, nil
}

func runMigration(name string, statements []string) func(ctx context.Context, tx *sql.Tx) error {
	return func(ctx context.Context, tx *sql.Tx) error {
		for _, statement := range statements {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("%s: %q: %w", name, statement, err)
			}
		}
		return nil
	}
}

// upAnnotation begins each file. No other annotation of goose is supported, because no file needs
// one.
const upAnnotation = "-- +goose Up\n"

// compatibleFrom is the second line of each file after compatibilityVersion.
var compatibleFrom = regexp.MustCompile(`^` + regexp.QuoteMeta(upAnnotation) + `-- Compatible from: (\d+)\n`)

// parseCompatibleFrom returns the oldest version of the schema whose servers can use the version of a file.
func parseCompatibleFrom(version int64, text string) (int64, error) {
	found := compatibleFrom.FindStringSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("the second line must say which servers can use the schema after this migration: write %q if those can that know version N",
			"-- Compatible from: N")
	}
	from, err := strconv.ParseInt(found[1], 10, 64)
	if err != nil || from < compatibilityVersion || from > version {
		return 0, fmt.Errorf("the migration is compatible from version %s: that must be between %d, the first that can tell, and its own version %d", found[1],
			compatibilityVersion, version)
	}
	return from, nil
}

// requiredVersion returns which version of the schema a server must know to use the result of all migrations after a version.
func requiredVersion(after int64, files ...fs.FS) (required int64, err error) {
	for _, dir := range files {
		if dir == nil {
			continue
		}
		names, err := fs.Glob(dir, "*.sql")
		if err != nil {
			return 0, err
		}
		for _, name := range names {
			version, err := goose.NumericComponent(name)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", name, err)
			}
			if version <= max(after, compatibilityVersion) {
				continue
			}
			text, err := fs.ReadFile(dir, name)
			if err != nil {
				return 0, err
			}
			from, err := parseCompatibleFrom(version, string(text))
			if err != nil {
				return 0, fmt.Errorf("%s: %w", name, err)
			}
			required = max(required, from)
		}
	}
	return required, nil
}

// recordCompatibility returns the statements that write a row of schema_compatibility. MySQL commits each change of the schema, so a
// migration that was interrupted may have written it.
func recordCompatibility(version, from int64) []string {
	return []string{fmt.Sprintf("DELETE FROM schema_compatibility WHERE version = %d;", version),
		fmt.Sprintf("INSERT INTO schema_compatibility (version, compatible_from) VALUES (%d, %d);", version, from)}
}

// splitMigration returns a file's statements. Each ends with a line that ends in a semicolon.
// Comments between statements are left out.
func splitMigration(text string) (statements []string, err error) {
	text, found := strings.CutPrefix(text, upAnnotation)
	if !found || strings.Contains(text, "+goose") {
		return nil, fmt.Errorf("the file must begin with %q, and may not contain another annotation", strings.TrimSpace(upAnnotation))
	}
	statement := ""
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		if statement == "" && (trimmed == "" || strings.HasPrefix(trimmed, "--")) {
			continue
		}
		statement += line
		if strings.HasSuffix(trimmed, ";") {
			statements = append(statements, strings.TrimSpace(statement))
			statement = ""
		}
	}
	if statement != "" {
		return nil, fmt.Errorf("a statement has no semicolon at the end of a line: %q", strings.TrimSpace(statement))
	}
	return statements, nil
}
