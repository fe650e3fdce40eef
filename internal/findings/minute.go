// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package findings

import "time"

// minute counts what happened in each of the last 60 seconds, and why.
type minute struct {
	seconds [60]int
	latest  int64          // the second that was counted last
	causes  map[string]int // since the cause map was last halved
}

// maxCauses is the maximum number of causes that are distinguished.
const maxCauses = 16

func (m *minute) add(now time.Time, cause string) {
	second := now.Unix()
	m.advance(second)
	if m.latest-second < int64(len(m.seconds)) {
		m.seconds[index(second)]++
	}
	if m.causes == nil || len(m.causes) >= maxCauses {
		m.causes = map[string]int{}
	}
	m.causes[cause]++
}

// index is never negative, even if the clock is wrong.
func index(second int64) int64 {
	const size = int64(len(minute{}.seconds))
	return (second%size + size) % size
}

// advance clears the seconds without events.
func (m *minute) advance(second int64) {
	if second <= m.latest {
		return
	}
	if second-m.latest >= int64(len(m.seconds)) {
		m.seconds = [60]int{}
		m.causes = nil
	} else {
		for s := m.latest + 1; s <= second; s++ {
			m.seconds[index(s)] = 0
		}
	}
	m.latest = second
}

// count returns how often something happened in the minute before a time.
func (m *minute) count(now time.Time) int {
	m.advance(now.Unix())
	total := 0
	for _, n := range m.seconds {
		total += n
	}
	return total
}

// most returns the most frequent cause.
func (m *minute) most() string {
	found, most := "unknown causes", 0
	for cause, n := range m.causes {
		if n > most || n == most && cause < found {
			found, most = cause, n
		}
	}
	return found
}
