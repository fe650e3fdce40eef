// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"os"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// connectTimeout is for an etcd whose socket takes connections but does not answer.
const connectTimeout = 10 * time.Second

// Source is a running etcd of another process, from which data is copied. It is
// no clientv3.Client: that one opens several connections, and there is but one.
type Source struct {
	connection *grpc.ClientConn
}

// Connect opens the etcd whose socket is in dir. It changes the working
// directory for a moment: the path of a socket is limited to about a hundred
// bytes, and that of a folder is not. Nothing else of the process may depend
// on the working directory meanwhile.
//
// If nothing listens, it returns the system's error: ENOENT or ECONNREFUSED.
func Connect(dir, socket string) (*Source, error) {
	socketConnection, err := dialIn(dir, socket)
	if err != nil {
		return nil, err
	}
	once := make(chan net.Conn, 1)
	once <- socketConnection
	connection, err := grpc.NewClient("passthrough:///"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()), // the socket is its owner's alone
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			select {
			case connection := <-once:
				return connection, nil
			default:
				return nil, errors.New("the connection to etcd was lost")
			}
		}))
	if err != nil {
		_ = socketConnection.Close()
		return nil, fmt.Errorf("connecting to etcd in %s: %w", dir, err)
	}
	return &Source{connection: connection}, nil
}

func dialIn(dir, socket string) (connection net.Conn, err error) {
	before, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("finding the working directory: %w", err)
	}
	if err := os.Chdir(dir); err != nil {
		return nil, err
	}
	defer func() {
		if back := os.Chdir(before); back != nil && err == nil {
			_ = connection.Close()
			connection, err = nil, fmt.Errorf("returning to the working directory: %w", back)
		}
	}()
	return net.DialTimeout("unix", socket, connectTimeout)
}

// Close ends the connection.
func (s *Source) Close() { _ = s.connection.Close() }

// Copy writes the database to a new file. The copy is one transaction of the
// database, and so the state after one revision: etcd goes on with its work
// meanwhile.
func (s *Source) Copy(ctx context.Context, path string) (err error) {
	stream, err := etcdserverpb.NewMaintenanceClient(s.connection).Snapshot(ctx, &etcdserverpb.SnapshotRequest{})
	if err != nil {
		return fmt.Errorf("asking etcd for its data: %w", err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := file.Close(); err == nil {
			err = closeErr
		}
	}()
	out := bufio.NewWriterSize(file, 1<<20)
	checked := &checkedWriter{out: out, sum: sha256.New()}
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("copying the data of etcd: %w", err)
		}
		if _, err := checked.Write(part.GetBlob()); err != nil {
			return fmt.Errorf("copying the data of etcd: %w", err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("copying the data of etcd: %w", err)
	}
	return checked.verify()
}

// Count returns how many keys with that prefix there were at a revision.
func (s *Source) Count(ctx context.Context, prefix string, revision int64) (int64, error) {
	response, err := etcdserverpb.NewKVClient(s.connection).Range(ctx, &etcdserverpb.RangeRequest{
		Key: []byte(prefix), RangeEnd: []byte(clientv3.GetPrefixRangeEnd(prefix)), CountOnly: true, Revision: revision,
	})
	if err != nil {
		return 0, fmt.Errorf("counting keys: %w", err)
	}
	return response.GetCount(), nil
}

// checkedWriter takes off the checksum that etcd sends at the end of its data.
type checkedWriter struct {
	out  io.Writer
	sum  hash.Hash
	last []byte // what may be the checksum; the rest has been written
}

func (w *checkedWriter) Write(data []byte) (int, error) {
	w.last = append(w.last, data...)
	known := len(w.last) - sha256.Size
	if known <= 0 {
		return len(data), nil
	}
	w.sum.Write(w.last[:known])
	if _, err := w.out.Write(w.last[:known]); err != nil {
		return 0, err
	}
	w.last = append(w.last[:0], w.last[known:]...)
	return len(data), nil
}

func (w *checkedWriter) verify() error {
	if !bytes.Equal(w.sum.Sum(nil), w.last) {
		return errors.New("copying the data of etcd: it ended early")
	}
	return nil
}
