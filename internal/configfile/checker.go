package configfile

import "fmt"

// Checker receives what is wrong with the settings of one group, at keys within the group, so that a package can check its
// settings wherever they are in a file.
type Checker struct {
	report *Report
	path   string // of the group; "" at the top
}

// Checker returns a checker of all settings.
func (r *Report) Checker() Checker { return Checker{report: r} }

// At returns the checker of a group within the group.
func (c Checker) At(key string) Checker { return Checker{c.report, c.Path(key)} }

// Path returns the whole path of a key, or that of the group if the key is empty.
func (c Checker) Path(key string) string {
	if key == "" {
		return c.path
	}
	return joinPath(c.path, key)
}

// Problem reports an error about a key. The message begins with the quoted path, which format continues: " must be …" or
// ": …".
func (c Checker) Problem(key, format string, args ...any) {
	path := c.Path(key)
	c.report.AddAt(path, "%q%s", path, fmt.Sprintf(format, args...))
}

// Missing reports at a key that another one is missing, and why it is needed.
func (c Checker) Missing(key, missing, why string) {
	c.report.AddAt(c.Path(key), "%q is missing: %s", c.Path(missing), why)
}

// Notice tells about a setting that is valid but unusual.
func (c Checker) Notice(key, format string, args ...any) {
	c.report.Notices = append(c.report.Notices, fmt.Sprintf("%s: %s", c.report.PositionOf(c.Path(key)), fmt.Sprintf(format, args...)))
}

// IsSet reports whether the setting at a key is set.
func (c Checker) IsSet(key string) bool { return c.report.IsSet(c.Path(key)) }
