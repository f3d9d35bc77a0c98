package program

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/vedette-io/vedette/internal/roff"
)

// man prints the manual page, which has the same text as --help. It is for releases, so --help does not show it. The date is that of
// the release.
func (p Program[C]) man(args []string, out io.Writer) error {
	if len(args) != 1 {
		return fmt.Errorf("say the date of the manual page: %s man 2026-11-27", p.Name)
	}
	if _, err := time.Parse(time.DateOnly, args[0]); err != nil {
		return fmt.Errorf("%q is not a date such as 2026-11-27", args[0])
	}
	summary, usage, _ := strings.Cut(p.Usage, "\n\n")
	short := strings.TrimSuffix(strings.TrimPrefix(strings.Join(strings.Fields(summary), " "), p.Name+" "), ".")
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 8 %s Vedette \"Vedette's services\"\n", roff.Quote(strings.ToUpper(p.Name)), roff.Quote(args[0]))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff.Escape(p.Name), roff.Escape(short))
	fmt.Fprintf(&b, ".SH DESCRIPTION\n.nf\n%s.fi\n", roff.Lines(usage))
	b.WriteString(".SH \"SEE ALSO\"\n.BR vedette (1)\n")
	_, err := io.WriteString(out, b.String())
	return err
}
