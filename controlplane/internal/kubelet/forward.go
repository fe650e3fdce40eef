// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// ForwardAnnotation on a pod says where its ports lead: 8080=127.0.0.1:9000,5432=15432.
const ForwardAnnotation = "opdock.dev/port-forward"

type forwarder struct{ pod *corev1.Pod }

// PortForward copies between a stream and the address that a port of the pod leads to.
func (f forwarder) PortForward(ctx context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	address, err := forwardTo(f.pod.Annotations[ForwardAnnotation], port)
	if err != nil {
		return fmt.Errorf("pod %s is simulated: %w", f.pod.Name, err)
	}
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("port %d of pod %s leads to %s: %w", port, f.pod.Name, address, err)
	}
	defer func() { _ = connection.Close() }()
	received := make(chan error, 1)
	go func() {
		_, err := io.Copy(stream, connection)
		received <- err
	}()
	sent := make(chan error, 1)
	go func() {
		_, err := io.Copy(connection, stream)
		// The other side may still have something to say.
		if tcp, ok := connection.(*net.TCPConn); ok {
			_ = tcp.CloseWrite()
		}
		sent <- err
	}()
	select {
	case err = <-received:
	case err = <-sent:
		if err == nil {
			err = <-received
		}
	case <-ctx.Done():
	}
	return err
}

// forwardTo returns the address that a port leads to. It is always one of this machine.
func forwardTo(annotation string, port int32) (string, error) {
	for item := range strings.SplitSeq(annotation, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		from, to, found := strings.Cut(item, "=")
		number, err := strconv.ParseUint(from, 10, 16)
		if !found || err != nil || number == 0 {
			return "", fmt.Errorf("annotation %s: %q is not PORT=ADDRESS", ForwardAnnotation, item)
		}
		if int32(number) != port {
			continue
		}
		return loopbackAddress(to)
	}
	return "", fmt.Errorf("port %d leads nowhere; set the annotation %s: %d=127.0.0.1:PORT", port, ForwardAnnotation, port)
}

func loopbackAddress(to string) (string, error) {
	if _, err := strconv.ParseUint(to, 10, 16); err == nil {
		return net.JoinHostPort("127.0.0.1", to), nil
	}
	host, _, err := net.SplitHostPort(to)
	if err != nil {
		return "", fmt.Errorf("annotation %s: %q is not an address such as 127.0.0.1:8080", ForwardAnnotation, to)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "", fmt.Errorf("annotation %s: %s is not an address of this machine", ForwardAnnotation, to)
	}
	return to, nil
}
