package configreload

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/configfile"
)

// Remarks asks the program that runs on this machine, and says how what is in effect differs from the
// settings in the files.
func Remarks(ctx context.Context, program string, e Endpoint, files []configfile.KeyValue) []string {
	running, err := Ask(ctx, e)
	if err != nil {
		return []string{"no running " + program + " was found to compare with: " + err.Error()}
	}
	return running.remarks(program, files)
}

// maxShown limits each text of the running program, in bytes, because another program may have answered.
const maxShown = 4 << 10

func (e Effective) remarks(program string, files []configfile.KeyValue) []string {
	remarks := []string{fmt.Sprintf("running %s %s: the configuration is in effect since %s, from %s", program, e.Name,
		e.Since.UTC().Format(time.RFC3339), strings.Join(e.Files, ", "))}
	if e.Error != "" {
		remarks = append(remarks, "the running "+program+" cannot use the files that it found: "+e.Error)
	}
	if len(e.RejectedAccounts) > 0 {
		remarks = append(remarks, "the running "+program+" found invalid accounts, of which earlier ones stay in effect: "+
			strings.Join(e.RejectedAccounts, ", "))
	}
	differences := Differences(files, e.Settings)
	if len(differences) == 0 {
		remarks = append(remarks, "the files agree with what is in effect, as far as values are shown")
	}
	for _, difference := range differences {
		remarks = append(remarks, "not in effect: "+difference)
	}
	for i, remark := range remarks {
		remarks[i] = vedette.CleanText(remark, maxShown)
	}
	return remarks
}

// Differences returns the settings of files that are not in effect. It ignores differences between two
// defaults, because some defaults contain the host's name.
func Differences(files, inEffect []configfile.KeyValue) []string {
	running := map[string]configfile.KeyValue{}
	for _, kv := range inEffect {
		running[kv.Key] = kv
	}
	var differences []string
	for _, kv := range files {
		other, known := running[kv.Key]
		delete(running, kv.Key)
		switch {
		case !known:
			differences = append(differences, kv.String()+"; there is no such setting in effect")
		case kv.Value != other.Value && (kv.From != configfile.FromDefault || other.From != configfile.FromDefault):
			differences = append(differences, fmt.Sprintf("%s; %s (%s) is", kv, other.Value, other.From))
		}
	}
	var gone []string
	for _, kv := range running {
		gone = append(gone, kv.String()+" is in effect and not in the files")
	}
	slices.Sort(gone)
	return append(differences, gone...)
}
