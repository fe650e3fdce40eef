// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/opdock/opdock/internal/filelock"
)

// KeptRecordings is how many recordings of a verb are kept in a folder.
const KeptRecordings = 10

// beganFormat is how the names of recordings begin. They end with the kind of recording, if the verb makes several.
const beganFormat = "20060102T150405.000"

// RecordingPath is the file for a recording that begins now. The kind is empty if the verb makes only one kind of recording.
func RecordingPath(dir string, now time.Time, kind string) string {
	return filepath.Join(dir, now.UTC().Format(beganFormat)+kind+".jsonl")
}

// RemoveOldest makes room for a recording among those of the same verb in its folder, of which the latest are kept.
// Recordings of other verbs stay, and so do those that are still written.
func RemoveOldest(path string, header Header, keep int) error {
	found, err := filepath.Glob(filepath.Join(filepath.Dir(path), "[0-9]*.jsonl"))
	if err != nil {
		return fmt.Errorf("looking for recordings: %w", err)
	}
	found = slices.DeleteFunc(found, func(one string) bool {
		other, ok := HeaderOf(one)
		return !ok || other.Traced != header.Traced || kindInName(one) != kindInName(path)
	})
	slices.SortFunc(found, func(a, b string) int { return cmp.Compare(b, a) })
	for _, one := range found[min(keep-1, len(found)):] {
		if err := removeUnused(one); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("removing an old recording: %w", err)
		}
	}
	return nil
}

// kindInName is what follows the time in the name of a recording.
func kindInName(path string) string {
	name := filepath.Base(path)
	return name[min(len(name), len(beganFormat)):]
}

// HeaderOf reads the first line of a recording; false if it has none yet.
func HeaderOf(path string) (header Header, ok bool) {
	file, err := os.Open(path)
	if err != nil {
		return header, false
	}
	defer file.Close()
	line, err := bufio.NewReader(file).ReadBytes('\n')
	return header, err == nil && json.Unmarshal(line, &header) == nil && header.Opdock == recordingName
}

// removeUnused removes a recording, unless another process writes it.
func removeUnused(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if errors.Is(filelock.Exclusive(file), filelock.ErrHeld) {
		return nil
	}
	return os.Remove(path)
}
