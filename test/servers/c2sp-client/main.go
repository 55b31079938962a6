// Reads an archive with the C2SP client of transparency-dev/tessera: checkpoint, every entry and its leaf hash, an inclusion proof of every
// 61st entry, and a consistency proof from every earlier checkpoint.
//
// Arguments: the directory of the archive, and the file with its verifier key. Prints the numbers of what was checked.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/transparency-dev/formats/log"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"github.com/transparency-dev/tessera/client"
	"golang.org/x/mod/sumdb/note"
)

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, directory, keyFile string) error {
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return err
	}
	verifier, err := note.NewVerifier(strings.TrimSpace(string(key)))
	if err != nil {
		return err
	}
	fetcher := client.FileFetcher{Root: directory}
	newest, _, _, err := client.FetchCheckpoint(ctx, fetcher.ReadCheckpoint, verifier, verifier.Name())
	if err != nil {
		return err
	}
	builder, err := client.NewProofBuilder(ctx, newest.Size, fetcher.ReadTile)
	if err != nil {
		return err
	}

	entries := uint64(0)
	for bundle := uint64(0); bundle*256 < newest.Size; bundle++ {
		raw, err := client.GetEntryBundle(ctx, fetcher.ReadEntryBundle, bundle, newest.Size)
		if err != nil {
			return err
		}
		leaves, err := client.FetchLeafHashes(ctx, fetcher.ReadTile, entries, uint64(len(raw.Entries)), newest.Size)
		if err != nil {
			return err
		}
		for i, entry := range raw.Entries {
			leaf := rfc6962.DefaultHasher.HashLeaf(entry)
			if !bytes.Equal(leaf, leaves[i]) {
				return fmt.Errorf("entry %d: another leaf hash", entries)
			}
			if entries%61 == 0 || entries+1 == newest.Size {
				path, err := builder.InclusionProof(ctx, entries)
				if err != nil {
					return err
				}
				if err := proof.VerifyInclusion(rfc6962.DefaultHasher, entries, newest.Size, leaf, path, newest.Hash); err != nil {
					return fmt.Errorf("entry %d: %w", entries, err)
				}
			}
			entries++
		}
	}

	names, err := filepath.Glob(filepath.Join(directory, "checkpoints", "*"))
	if err != nil {
		return err
	}
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		older, _, _, err := log.ParseCheckpoint(raw, verifier.Name(), verifier)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		path, err := builder.ConsistencyProof(ctx, older.Size, newest.Size)
		if err != nil {
			return err
		}
		if err := proof.VerifyConsistency(rfc6962.DefaultHasher, older.Size, newest.Size, path, older.Hash, newest.Hash); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if older.Size == newest.Size && !bytes.Equal(older.Hash, newest.Hash) {
			return fmt.Errorf("%s: another root", name)
		}
	}
	fmt.Printf("%d entries, %d checkpoints\n", entries, len(names))
	return nil
}
