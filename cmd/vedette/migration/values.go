// Package migration has the commands for those who come from the predecessor.
package migration

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/output"
	"github.com/vedette-io/vedette/internal/formerchart"
)

// Commands returns the commands.
func Commands() []*cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Convert files of the predecessor, the Armory Scale Agent",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	cmd.AddCommand(newValues())
	return []*cobra.Command{cmd}
}

const valuesLong = `Convert values of the Helm chart agent-k8s-full into values of the chart vedette.

The converted values are printed. What you should know or do is printed on standard
error, with the lines of FILE. A value that is unknown is an error.

Kubeconfigs, tokens and passwords do not belong into values, because Helm keeps these in
the history of a release. They are left out, and the commands are printed that put them
into Secrets. --secrets-to writes the files for these commands; nothing of them is printed.`

func newValues() *cobra.Command {
	secretsTo := ""
	cmd := &cobra.Command{
		Use:   "values FILE",
		Short: "Convert values of the chart agent-k8s-full",
		Long:  valuesLong,
		Example: `  helm get values armory-agent -n spinnaker -o yaml > old.yml
  vedette migrate values old.yml --secrets-to secrets > values.yml
  helm upgrade --install vedette-agent oci://ghcr.io/vedette-io/charts/vedette -n spinnaker -f values.yml`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := read(cmd.InOrStdin(), args[0])
			if err != nil {
				return err
			}
			result, err := formerchart.Convert(file)
			if err != nil {
				return fmt.Errorf("convert %s: %w", output.Sanitize(args[0]), err)
			}
			if err := writeSecrets(secretsTo, result.Secrets); err != nil {
				return err
			}
			report(cmd.ErrOrStderr(), args[0], secretsTo, result)
			_, err = cmd.OutOrStdout().Write(result.Values)
			return err
		},
	}
	cmd.Flags().StringVar(&secretsTo, "secrets-to", "", "Directory to create, for the files that become Secrets. Only you can read it.")
	return cmd
}

// read returns a file, or standard input for "-", if it is not too large to be values.
func read(in io.Reader, path string) ([]byte, error) {
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, vedette.Errorf(vedette.Invalid, "read the values: %w", err)
		}
		defer f.Close()
		in = f
	}
	content, err := io.ReadAll(io.LimitReader(in, formerchart.MaxBytes+1))
	if err != nil {
		return nil, vedette.Errorf(vedette.Invalid, "read the values: %w", err)
	}
	return content, nil
}

// writeSecrets writes the content of Secrets into a new directory.
func writeSecrets(directory string, secrets []formerchart.Secret) error {
	if directory == "" {
		return nil
	}
	if err := os.Mkdir(directory, 0o700); err != nil {
		if errors.Is(err, os.ErrExist) {
			return vedette.Errorf(vedette.Invalid, "%s exists: name a directory that does not, so that no file is overwritten", directory)
		}
		return fmt.Errorf("create the directory for secrets: %w", err)
	}
	root, err := os.OpenRoot(directory)
	if err != nil {
		return fmt.Errorf("open the directory for secrets: %w", err)
	}
	defer root.Close()
	for _, s := range secrets {
		if err := root.MkdirAll(s.Name, 0o700); err != nil {
			return fmt.Errorf("write the Secret %s: %w", s.Name, err)
		}
		if err := root.WriteFile(filepath.Join(s.Name, s.Key), s.Content, 0o600); err != nil {
			return fmt.Errorf("write the Secret %s: %w", s.Name, err)
		}
	}
	return nil
}

// report prints the notes, and the commands that create Secrets.
func report(w io.Writer, file, secretsTo string, result *formerchart.Result) {
	for _, n := range result.Notes {
		at := file
		if n.Line > 0 {
			at = fmt.Sprintf("%s:%d", file, n.Line)
		}
		fmt.Fprintln(w, output.Sanitize(fmt.Sprintf("%s: %s %s", at, n.Path, n.Text)))
	}
	if len(result.Secrets) == 0 {
		return
	}
	if secretsTo == "" {
		secretsTo = "DIR"
		fmt.Fprintln(w, "Put these contents into files, or use --secrets-to DIR, which does so. Then create the Secrets in the namespace of the release:")
	} else {
		fmt.Fprintln(w, "Create these Secrets in the namespace of the release, and then remove the files:")
	}
	for _, command := range commands(secretsTo, result.Secrets) {
		fmt.Fprintln(w, "  "+output.Sanitize(command))
	}
}

// commands returns the command that creates each Secret.
func commands(directory string, secrets []formerchart.Secret) (lines []string) {
	index := map[string]int{}
	for _, s := range secrets {
		i, known := index[s.Name]
		if !known {
			i = len(lines)
			index[s.Name] = i
			lines = append(lines, "kubectl create secret generic "+s.Name)
		}
		lines[i] += " --from-file=" + shellWord(s.Key+"="+filepath.Join(directory, s.Name, s.Key))
	}
	return lines
}

// shellWord quotes a text for a shell if it needs that.
func shellWord(text string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_/="
	if strings.Trim(text, plain) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
