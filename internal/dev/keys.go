// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import "context"

// Keys that mean something.
const (
	keySamples = 's'
	keyRestart = 'r'
	keyTests   = 't'
	keyQuit    = 'q'
	keyHelp    = '?'
	keyCtrlC   = '\x03'
)

// KeyHelp describes the keys.
const KeyHelp = "Keys: s applies the samples · r restarts · t runs the tests · q quits · ? shows this help"

func (s *Session) press(ctx context.Context, input string) (quit bool) {
	for _, key := range input {
		switch key {
		case keyQuit, keyCtrlC:
			return true
		case keyHelp:
			s.Screen.Say(KeyHelp)
		case keyTests:
			s.runTests(ctx)
		case keySamples:
			s.sampled = true
			s.add(workSamples|s.leftover, nil, "samples")
			s.leftover = 0
		case keyRestart:
			s.crashes = 0
			s.retry.Stop()
			s.add(workManifests|workRestart|s.leftover, nil, "restart") // applied objects may have been deleted
			s.leftover = 0
		}
	}
	return false
}
