// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pki creates the certificates that this module needs: for identities on a cluster, and for
// webhooks of an operator under development. Keys are ECDSA keys, which take only microseconds to create.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"
)

// clockSkew is for clients in containers and virtual machines whose clock is behind.
const clockSkew = 5 * time.Minute

// Pair is a certificate and its key, PEM encoded.
type Pair struct {
	Certificate, Key []byte
}

// Authority signs certificates.
type Authority struct {
	Pair

	certificate *x509.Certificate
	key         crypto.Signer
}

// NewAuthority makes an authority that signs itself.
func NewAuthority(name string, now time.Time, life time.Duration) (*Authority, error) {
	template := valid(now, life)
	template.Subject = pkix.Name{CommonName: name}
	template.IsCA, template.KeyUsage = true, x509.KeyUsageCertSign
	pair, err := sign(template, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("creating a certificate authority: %w", err)
	}
	return ParseAuthority(pair)
}

// ParseAuthority makes an authority of a certificate and its key.
func ParseAuthority(pair Pair) (a *Authority, err error) {
	a = &Authority{Pair: pair}
	if a.certificate, err = parse(pair.Certificate, x509.ParseCertificate); err != nil {
		return nil, fmt.Errorf("reading the certificate of an authority: %w", err)
	}
	if a.key, err = parse(pair.Key, parseKey); err != nil {
		return nil, fmt.Errorf("reading the key of an authority: %w", err)
	}
	return a, nil
}

// LoadAuthority reads an authority, which the control plane has made, from ca.crt and ca.key in a folder.
func LoadAuthority(dir string) (a *Authority, err error) {
	a = &Authority{}
	if a.Certificate, a.certificate, err = load(filepath.Join(dir, "ca.crt"), x509.ParseCertificate); err != nil {
		return nil, err
	}
	if a.Key, a.key, err = load(filepath.Join(dir, "ca.key"), parseKey); err != nil {
		return nil, err
	}
	return a, nil
}

func load[T any](path string, as func([]byte) (T, error)) (text []byte, parsed T, err error) {
	if text, err = os.ReadFile(path); err != nil {
		return nil, parsed, err
	}
	if parsed, err = parse(text, as); err != nil {
		return nil, parsed, fmt.Errorf("reading %s: %w", path, err)
	}
	return text, parsed, nil
}

// Client makes the certificate of a user with groups.
func (a *Authority) Client(user string, groups []string, now time.Time, life time.Duration) (Pair, error) {
	template := valid(now, life)
	template.Subject = pkix.Name{CommonName: user, Organization: groups}
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return sign(template, a.certificate, a.key)
}

// Loopback makes a certificate for a server on this machine.
func (a *Authority) Loopback(now time.Time, life time.Duration) (Pair, error) {
	return sign(loopback(now, life), a.certificate, a.key)
}

func loopback(now time.Time, life time.Duration) *x509.Certificate {
	template := valid(now, life)
	template.Subject = pkix.Name{CommonName: "localhost"}
	template.DNSNames, template.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	return template
}

// LoopbackAs makes a certificate for a server on this machine that another certificate, PEM encoded, was made for elsewhere. It
// ends no later than the authority does.
func (a *Authority) LoopbackAs(other []byte, now time.Time, life time.Duration) (Pair, error) {
	known, err := parse(other, x509.ParseCertificate)
	if err != nil {
		return Pair{}, fmt.Errorf("reading a certificate: %w", err)
	}
	if left := a.certificate.NotAfter.Sub(now); left < life {
		life = left
	}
	template := loopback(now, life)
	template.Subject = known.Subject
	template.DNSNames, template.IPAddresses = append(template.DNSNames, known.DNSNames...), append(template.IPAddresses, known.IPAddresses...)
	return sign(template, a.certificate, a.key)
}

// valid is a template without a serial number, for which x509 draws a random one.
func valid(now time.Time, life time.Duration) *x509.Certificate {
	return &x509.Certificate{NotBefore: now.Add(-clockSkew), NotAfter: now.Add(life), BasicConstraintsValid: true}
}

// sign makes a key and a certificate for it. Without a parent the certificate signs itself.
func sign(template, parent *x509.Certificate, parentKey crypto.Signer) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	if parent == nil {
		parent, parentKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		return Pair{}, err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
	}, nil
}

func parse[T any](text []byte, as func([]byte) (T, error)) (parsed T, err error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return parsed, errors.New("no PEM block found")
	}
	return as(block.Bytes)
}

func parseKey(der []byte) (crypto.Signer, error) {
	if key, err := x509.ParseECPrivateKey(der); err == nil {
		return key, nil
	}
	if key, err := x509.ParsePKCS1PrivateKey(der); err == nil {
		return key, nil
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a %T cannot sign", key)
	}
	return signer, nil
}
