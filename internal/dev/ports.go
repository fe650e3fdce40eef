// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/opdock/opdock/internal/freeport"
)

const loopback = "127.0.0.1"

// ports are the ports that an operator listens on. They are chosen long before it does.
type ports struct{ probe, webhooks, records int }

// renew replaces ports that are not chosen yet, or that another process has taken since.
func (p *ports) renew() error {
	chosen := map[int]bool{}
	for _, port := range []*int{&p.probe, &p.webhooks, &p.records} {
		taken, err := freeport.Taken(*port)
		for err == nil && (*port == 0 || taken || chosen[*port]) {
			*port, err = freeport.Find()
			taken = false
		}
		if err != nil {
			return fmt.Errorf("finding a free port: %w", err)
		}
		chosen[*port] = true
	}
	return nil
}

// PortError is a port that the operator needs and another process has.
type PortError struct {
	Port  int
	Owner string // description of the process; may be empty
}

func (e *PortError) Error() string {
	by := "another process"
	if e.Owner != "" {
		by = e.Owner
	}
	return fmt.Sprintf("port %d is in use by %s", e.Port, by)
}

// checkPort returns a PortError if the operator could not listen on the port.
func checkPort(port int) error {
	taken, err := freeport.Taken(port)
	if taken {
		return &PortError{Port: port, Owner: portOwner(port)}
	}
	return err
}

var addressInUse = regexp.MustCompile(`listen tcp\S* \S*:(\d+): bind: address already in use`)

// portInLog finds the port that an operator could not have, in the end of its log.
func portInLog(lines []string) *PortError {
	for _, line := range lines {
		if match := addressInUse.FindStringSubmatch(line); match != nil {
			port, err := strconv.Atoi(match[1])
			if err == nil {
				return &PortError{Port: port, Owner: portOwner(port)}
			}
		}
	}
	return nil
}

// portOwner names the process that listens on a port. It works on Linux, for processes of the
// same user.
func portOwner(port int) string {
	sockets := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		content, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		for _, inode := range listeners(string(content), port) {
			sockets["socket:["+inode+"]"] = true
		}
	}
	if len(sockets) == 0 {
		return ""
	}
	descriptors, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return ""
	}
	for _, descriptor := range descriptors {
		target, err := os.Readlink(descriptor)
		if err != nil || !sockets[target] {
			continue
		}
		process := filepath.Dir(filepath.Dir(descriptor))
		name, err := os.ReadFile(filepath.Join(process, "comm"))
		if err != nil {
			continue
		}
		return fmt.Sprintf("%s (pid %s)", bytes.TrimSpace(name), filepath.Base(process))
	}
	return ""
}

// listeners returns the sockets in a table of the kernel's that listen on a port.
func listeners(table string, port int) (inodes []string) {
	const stateListen, address, state, inode = "0A", 1, 3, 9
	suffix := fmt.Sprintf(":%04X", port)
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) > inode && strings.HasSuffix(fields[address], suffix) && fields[state] == stateListen {
			inodes = append(inodes, fields[inode])
		}
	}
	return inodes
}
