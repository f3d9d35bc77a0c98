// Release builds everything that a release consists of: programs, images, packages, archives, bills of materials, checksums and
// their signature. The same commit, version and Go release give the same bytes on each machine.
//
//	release build --version v0.1.0 [--out dist] [--platforms linux/amd64,…] [--key FILE]
//	release images --version v0.1.0 --root DIR --out DIR [--platforms linux/amd64]
//	release push --from dist REPOSITORY
//	release verify --key FILE --from dist
//
// "images" is for tests: it builds nothing but programs and images, of any checkout, and compresses less. Files have the time of the
// commit. docs/decisions/0173 has the reasons. The key is a private one of ECDSA in PEM, as
// "openssl ecparam -name prime256v1 -genkey -noout" writes it; its public part verifies with cosign (verify, verify-blob) and with
// openssl.
package main

import (
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("say what to do: build, images, push or verify")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	switch args[0] {
	case "build", "images":
		b := build{level: gzip.BestCompression}
		if args[0] == "images" {
			b = build{level: gzip.BestSpeed, anyState: true, onlyImages: true}
		}
		flags.StringVar(&b.version, "version", "", "version of the release, such as v0.1.0")
		flags.StringVar(&b.root, "root", "../..", "directory of the repository")
		flags.StringVar(&b.out, "out", "dist", "directory to write; it must not exist or be empty")
		flags.StringVar(&b.key, "key", "", "file with the private key that signs; nothing is signed without it")
		platforms := flags.String("platforms", strings.Join(allPlatforms(), ","), "platforms to build for")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		b.platforms = strings.Split(*platforms, ",")
		return b.run(ctx)
	case "push":
		from := flags.String("from", "dist", "directory that build wrote")
		insecure := flags.Bool("insecure", false, "the registry speaks HTTP without TLS")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		if flags.NArg() != 1 {
			return errors.New("say where to push to, such as ghcr.io/vedette-io")
		}
		return push(ctx, *from, flags.Arg(0), *insecure)
	case "verify":
		from := flags.String("from", "dist", "directory that build wrote")
		key := flags.String("key", "", "file with the public key")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return verify(*from, *key)
	default:
		return fmt.Errorf("unknown command %q: say build, images, push or verify", args[0])
	}
}
