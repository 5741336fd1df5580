package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"holdfast/cmd/holdfast/internal/session"
)

const (
	defaultAddr = "127.0.0.1:7620"
	defaultPort = "7620"
	dialTimeout = 5 * time.Second

	envAddrs         = "HOLDFAST_ADDRS"
	envAuthToken     = "HOLDFAST_AUTH_TOKEN"
	envAuthTokenFile = "HOLDFAST_AUTH_TOKEN_FILE"
)

// connFlags say which servers are meant and how to reach them.
type connFlags struct {
	addrs         string
	authTokenFile string
	tls           bool
	tlsCA         string
	tlsCert       string
	tlsKey        string
	tlsServerName string
}

func (c *connFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&c.addrs, "addr", "", "native `addresses` of the nodes, separated by commas\n(default $HOLDFAST_ADDRS, then "+defaultAddr+")")
	flags.StringVar(&c.authTokenFile, "auth-token-file", "", "`file` with the auth token\n(default $HOLDFAST_AUTH_TOKEN or the file $HOLDFAST_AUTH_TOKEN_FILE)")
	flags.BoolVar(&c.tls, "tls", false, "use TLS; implied by the --tls-... flags")
	flags.StringVar(&c.tlsCA, "tls-ca", "", "`file` with the certificates that the server's is checked with\n(default the system's)")
	flags.StringVar(&c.tlsCert, "tls-cert", "", "`file` with the own certificate")
	flags.StringVar(&c.tlsKey, "tls-key", "", "`file` with the key of the own certificate")
	flags.StringVar(&c.tlsServerName, "tls-server-name", "", "`name` in the server's certificate (default the host in its address)")
}

// target is where requests go, all flags and variables considered.
type target struct {
	addrs   []string
	session session.Config
}

// target resolves the flags. owner is the label that the server shows, "" for
// the default one.
func (a *app) target(owner string) (*target, error) {
	list := a.conn.addrs
	if list == "" {
		list = a.getenv(envAddrs)
	}
	if list == "" {
		list = defaultAddr
	}
	addrs, err := parseAddrs(list)
	if err != nil {
		return nil, err
	}
	token, err := a.authToken()
	if err != nil {
		return nil, err
	}
	tlsConfig, err := a.conn.tlsConfig()
	if err != nil {
		return nil, err
	}
	if owner == "" {
		owner = defaultOwner()
	}
	return &target{addrs: addrs, session: session.Config{
		TLS: tlsConfig, AuthToken: token, Owner: owner, Software: software(), Timeout: dialTimeout,
	}}, nil
}

// parseAddrs splits a list of addresses. A missing port is the native one.
func parseAddrs(list string) ([]string, error) {
	var addrs []string
	for entry := range strings.SplitSeq(list, ",") {
		addr, err := parseAddr(strings.TrimSpace(entry))
		if err != nil {
			return nil, fmt.Errorf("address %q in %q: %w", entry, list, err)
		}
		if !slices.Contains(addrs, addr) {
			addrs = append(addrs, addr)
		}
	}
	return addrs, nil
}

func parseAddr(s string) (string, error) {
	if strings.Contains(s, "/") {
		return "", errors.New("give host:port, not a URL")
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		host, port = strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"), defaultPort
		if strings.Contains(host, ":") && net.ParseIP(host) == nil {
			return "", errors.New("give host:port, an IPv6 host in brackets")
		}
	}
	if host == "" {
		return "", errors.New("the host is missing")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("port %q: 1 to 65535", port)
	}
	return net.JoinHostPort(host, port), nil
}

// authToken returns "" if none is configured.
func (a *app) authToken() (string, error) {
	file, literal := a.conn.authTokenFile, a.getenv(envAuthToken)
	if file != "" {
		return readToken(file)
	}
	file = a.getenv(envAuthTokenFile)
	if file == "" {
		return literal, nil
	}
	if literal != "" {
		return "", fmt.Errorf("%s and %s are both set: unset one", envAuthToken, envAuthTokenFile)
	}
	return readToken(file)
}

func readToken(file string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read auth token: %w", err)
	}
	token := strings.TrimSpace(string(content))
	if token == "" {
		return "", fmt.Errorf("read auth token: %s is empty", file)
	}
	return token, nil
}

// tlsConfig returns nil for plain TCP.
func (c *connFlags) tlsConfig() (*tls.Config, error) {
	if !c.tls && c.tlsCA == "" && c.tlsCert == "" && c.tlsKey == "" && c.tlsServerName == "" {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.tlsServerName}
	if c.tlsCA != "" {
		pem, err := os.ReadFile(c.tlsCA)
		if err != nil {
			return nil, fmt.Errorf("--tls-ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--tls-ca: %s holds no PEM certificate", c.tlsCA)
		}
	}
	if (c.tlsCert == "") != (c.tlsKey == "") {
		return nil, errors.New("--tls-cert and --tls-key: give both or neither")
	}
	if c.tlsCert != "" {
		certificate, err := tls.LoadX509KeyPair(c.tlsCert, c.tlsKey)
		if err != nil {
			return nil, fmt.Errorf("--tls-cert and --tls-key: %w", err)
		}
		config.Certificates = []tls.Certificate{certificate}
	}
	return config, nil
}

// defaultOwner is like the one of package client.
func defaultOwner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/holdfast:%d", host, os.Getpid())
}
