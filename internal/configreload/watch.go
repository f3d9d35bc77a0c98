package configreload

import (
	"context"
	"os"
	"slices"
	"sync"

	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/internal/filewatch"
)

// Watch applies changes of the files and secrets of the configuration until ctx ends, and closes the
// configuration that is in effect then.
func (r *Reloader[C]) Watch(ctx context.Context) error {
	if pipe := firstIrregular(r.current.ReadFiles()); pipe != "" {
		r.o.Log.Info("the configuration is not reloaded when it changes, because it cannot be read twice", "file", pipe)
		<-ctx.Done()
		return r.current.Close()
	}
	secretsChanged := make(chan struct{}, 1)
	var refreshing sync.WaitGroup
	refreshing.Go(func() {
		refreshSecrets(ctx, func() C { return r.inEffect.Load().current }, secretsChanged, r.o.Log)
	})
	files := filewatch.Config{Also: secretsChanged, WithoutNotifications: r.o.WithoutNotifications, Log: r.o.Log}
	filewatch.Watch(ctx, files, r.watched(r.current.Files()), r.reload)
	refreshing.Wait()
	return r.current.Close()
}

// watched returns the files whose change may change what is in effect, besides those of a configuration.
func (r *Reloader[C]) watched(files []configfile.File) []string {
	all := paths(files)
	if r.o.Credentials != nil {
		all = append(all, r.o.Credentials()...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func paths(files []configfile.File) (all []string) {
	for _, file := range files {
		all = append(all, file.Path)
	}
	return all
}

// firstIrregular returns the first file that can be read only once, such as a pipe, or "".
func firstIrregular(files []string) string {
	at := slices.IndexFunc(files, func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && !info.Mode().IsRegular()
	})
	if at < 0 {
		return ""
	}
	return files[at]
}
