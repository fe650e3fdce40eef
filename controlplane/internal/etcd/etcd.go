// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package etcd runs the upstream etcd server inside this process.
package etcd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Options describe one embedded etcd.
type Options struct {
	// Dir holds the data.
	Dir string
	// Socket is the unix socket on which clients are served. A path relative to
	// the working directory has no trouble with the length limit of sockets.
	Socket string
	// Durable makes every write survive a power loss, at the price of an fsync.
	Durable bool
	// Existing means that there must be data from before.
	Existing bool
}

// Server is a running etcd.
type Server struct {
	etcd     *embed.Etcd
	endpoint string
}

// segmentBytes is the size of a write-ahead log segment. Upstream preallocates
// 64 MB twice, which a laptop full of small clusters would feel.
const segmentBytes = 16 << 20

// Start returns once etcd takes reads and writes.
func Start(ctx context.Context, o Options) (server *Server, err error) {
	wal.SegmentSizeBytes = segmentBytes

	cfg := embed.NewConfig()
	cfg.Name = "opdock"
	cfg.Dir = o.Dir
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	endpoint := url.URL{Scheme: "unix", Host: o.Socket}
	cfg.ListenClientUrls = []url.URL{endpoint}
	// There is one member, so no peer URL is needed. The default advertised URLs stay: they only
	// name the member.
	cfg.ListenPeerUrls = nil
	// A cluster of one elects itself when its election timeout passes, and that
	// wait is nearly all of etcd's start-up. It passes after one to five ticks:
	// etcd takes no fewer, and more ticks would only wake an idle process more often.
	cfg.TickMs, cfg.ElectionMs = 10, 50
	cfg.UnsafeNoFsync = !o.Durable
	// The API server compacts by itself every five minutes; this bounds the
	// database for a cluster under heavy load in between.
	cfg.QuotaBackendBytes = 4 << 30
	cfg.WarningApplyDuration, cfg.WarningUnaryRequestDuration = time.Second, time.Second
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(newLogger())

	if err := os.Remove(o.Socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("removing the old socket of etcd: %w", err)
	}
	if err := os.MkdirAll(filepath.Clean(o.Dir), 0o700); err != nil {
		return nil, fmt.Errorf("creating the data folder of etcd: %w", err)
	}
	if o.Existing {
		if err := verify(o.Dir); err != nil {
			return nil, err
		}
	} else if err := discardStillborn(o.Dir); err != nil {
		return nil, err
	}
	// etcd panics when it does not like its data. What happens on this goroutine
	// can still become an error.
	defer func() {
		if p := recover(); p != nil {
			server, err = nil, fmt.Errorf("etcd refused its data in %s: %v", o.Dir, p)
		}
	}()
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, fmt.Errorf("starting etcd: %w", err)
	}
	select {
	case <-e.Server.ReadyNotify():
		return &Server{etcd: e, endpoint: "unix:" + o.Socket}, nil
	case err := <-e.Err():
		e.Close()
		return nil, fmt.Errorf("etcd stopped while starting: %w", err)
	case <-ctx.Done():
		e.Close()
		return nil, context.Cause(ctx)
	}
}

// Endpoint is where clients of this process find etcd.
func (s *Server) Endpoint() string { return s.endpoint }

// Err delivers the error with which etcd stopped by itself.
func (s *Server) Err() <-chan error { return s.etcd.Err() }

// Stop ends etcd after everything it acknowledged is on disk.
func (s *Server) Stop() { s.etcd.Close() }

func newLogger() *zap.Logger {
	encoder := zap.NewProductionEncoderConfig()
	encoder.EncodeTime = zapcore.ISO8601TimeEncoder
	core := zapcore.NewCore(zapcore.NewConsoleEncoder(encoder), zapcore.Lock(os.Stderr), zap.WarnLevel)
	// Fatal would end the process without a report to its parent.
	return zap.New(core, zap.WithFatalHook(zapcore.WriteThenPanic)).Named("etcd")
}
