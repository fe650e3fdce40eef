// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"fmt"
	"net"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/page"
)

// PageOptions are the flags of verbs that serve the page.
type PageOptions struct {
	Serve   bool
	Address string
}

// AddFlags adds the flags of the page.
func (o *PageOptions) AddFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.Serve, "page", true, "serve a live view of objects, events and reconciles on loopback")
	cmd.Flags().StringVar(&o.Address, "page-address", "", "address of the page, such as 127.0.0.1:8700 (default: a free port on loopback)")
}

// Check reports flags of the page that do not fit together, or an address that is not on loopback.
func (o *PageOptions) Check(cmd *cobra.Command) error {
	var message string
	switch {
	case o.Address == "":
		return nil
	case !o.Serve:
		message = "--page-address cannot be used with --page=false"
	default:
		err := page.CheckAddress(o.Address)
		if err == nil {
			return nil
		}
		message = "--page-address: " + err.Error()
	}
	return &UsageError{Message: message, Hints: []string{SeeHelp(cmd)}}
}

// CheckFree returns an error if the page cannot be served at its address, because something else is.
func (o *PageOptions) CheckFree() error {
	if !o.Serve || o.Address == "" {
		return nil
	}
	listener, err := net.Listen("tcp", o.Address)
	if err != nil {
		return hint.With(fmt.Errorf("the page cannot be served at %s: %w", o.Address, err), "choose another address with --page-address, or do without: --page=false")
	}
	return listener.Close()
}
