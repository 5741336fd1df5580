package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"holdfast/cmd/holdfast/internal/fakeserver"
)

// commands lists the paths of all of them, such as "holdfast run".
func commands(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, sub := range cmd.Commands() {
		all = append(all, commands(sub)...)
	}
	return all
}

func TestHelp(t *testing.T) {
	for _, cmd := range commands(newRoot(newApp(nil, nil, nil))) {
		name := cmd.Name()
		args := strings.Fields(cmd.CommandPath())[1:]
		o := command(t.Context(), nil, append(args, "--help")...)
		if o.code != 0 || o.stderr != "" {
			t.Errorf("%s: %+v", cmd.CommandPath(), o)
		}
		golden(t, filepath.Join("testdata", "help", name+".txt"), o.stdout)
		if !strings.Contains(o.stdout, "\nExamples:\n") {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want := mustRead(t, name); got != want {
		t.Errorf("%s differs; if that is meant: go test ./cmd/holdfast -run %s -rewrite\n%s", name, t.Name(), got)
	}
}

// docs/cli.md speaks of every command and of every flag.
func TestDocumentation(t *testing.T) {
	page := mustRead(t, "../../docs/cli.md")
	for _, cmd := range commands(newRoot(newApp(nil, nil, nil))) {
		if path := cmd.CommandPath(); !strings.Contains(page, path) {
			t.Errorf("docs/cli.md does not mention %s", path)
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !strings.Contains(page, "--"+f.Name) {
				t.Errorf("docs/cli.md does not mention --%s of %s", f.Name, cmd.CommandPath())
			}
		})
	}
}

func TestCommandErrors(t *testing.T) {
	for _, c := range []struct {
		args   []string
		stderr string
	}{
		{[]string{"aquire"}, "unknown command \"aquire\" for \"holdfast\"\n\nDid you mean this?\n\tacquire"},
		{[]string{"status"}, `unknown command "status"`},
		{[]string{"--nonsense"}, "unknown flag: --nonsense\nSee 'holdfast --help'"},
		{[]string{"version", "now"}, `unexpected argument "now"`},
		{[]string{"ping", "--addr", "a:b"}, `address "a:b" in "a:b": port "b": 1 to 65535`},
		{[]string{"ping", "--tls-cert", "x"}, "--tls-cert and --tls-key: give both or neither"},
		{[]string{"ping", "--tls-ca", "/nonexistent"}, "--tls-ca: open /nonexistent"},
	} {
		if o := command(t.Context(), nil, c.args...); o.code != exitFailure || o.stdout != "" || !strings.HasPrefix(o.stderr, "holdfast: ") || !strings.Contains(o.stderr, c.stderr) {
			t.Errorf("%v: %+v; want %q", c.args, o, c.stderr)
		}
	}
	if o := command(t.Context(), nil); o.code != exitFailure || !strings.Contains(o.stdout, "Available Commands:") {
		t.Errorf("without arguments: %+v", o)
	}
}

func TestVersion(t *testing.T) {
	if o := command(t.Context(), nil, "version"); o.code != 0 || !strings.HasPrefix(o.stdout, "holdfast devel") || !strings.Contains(o.stdout, "protocol 1") {
		t.Errorf("%+v", o)
	}
	if o := command(t.Context(), nil, "version", "-o", "json"); o.code != 0 || !strings.Contains(o.stdout, `"protocol": 1`) {
		t.Errorf("%+v", o)
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if o := command(t.Context(), nil, "completion", shell); o.code != 0 || !strings.Contains(o.stdout, "holdfast") {
			t.Errorf("%s: exit code %d, %d bytes", shell, o.code, len(o.stdout))
		}
	}
	// What the generated scripts call.
	if o := command(t.Context(), nil, "__complete", "run", "--on-lost", ""); !strings.HasPrefix(o.stdout, "term\nkill\nignore\n") {
		t.Errorf("values of --on-lost: %+v", o)
	}
}

func TestParseAddrs(t *testing.T) {
	for list, want := range map[string]string{
		"127.0.0.1:1":             "127.0.0.1:1",
		"n1, n2:7630 ,n1:7620":    "n1:7620 n2:7630",
		"[::1]:7630,::1,[fe80::]": "[::1]:7630 [::1]:7620 [fe80::]:7620",
	} {
		if got, err := parseAddrs(list); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %q, %v; want %q", list, got, err, want)
		}
	}
	for _, list := range []string{",", "n1,", ":7620", "n1:0", "n1:65536", "n1:http", "http://n1:7621", "a:b:c"} {
		if got, err := parseAddrs(list); err == nil {
			t.Errorf("%q: %q; want an error", list, got)
		}
	}
}

func TestAddressesBy(t *testing.T) {
	for name, c := range map[string]struct {
		env, args []string
		want      string
	}{
		"default":              {nil, nil, "127.0.0.1:7620"},
		"variable":             {[]string{"HOLDFAST_ADDRS=n1,n2"}, nil, "n1:7620 n2:7620"},
		"empty variable":       {[]string{"HOLDFAST_ADDRS="}, nil, "127.0.0.1:7620"},
		"flag before variable": {[]string{"HOLDFAST_ADDRS=n1"}, []string{"--addr", "n3"}, "n3:7620"},
	} {
		a := newApp(c.env, nil, nil)
		if err := newRoot(a).ParseFlags(c.args); err != nil {
			t.Fatal(err)
		}
		if got, err := a.target(""); err != nil || strings.Join(got.addrs, " ") != c.want {
			t.Errorf("%s: %v, %v; want %s", name, got, err, c.want)
		}
	}
}

func TestParseTicket(t *testing.T) {
	for _, s := range []string{"", "0", strings.Repeat("0", 32), strings.Repeat("a", 31), strings.Repeat("a", 33), strings.Repeat("g", 32), strings.Repeat("a", 1000)} {
		if got, err := parseTicket(s); err == nil {
			t.Errorf("%q: %x; want an error", s, got)
		}
	}
}

// certificate makes a self-signed one for 127.0.0.1 and returns its files.
func certificate(t *testing.T) (cert tls.Certificate, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"node.test"}, IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	certFile, keyFile = write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", keyDER)
	cert, err = tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	return cert, certFile, keyFile
}

// startTLS serves a fake server over TLS that demands a client certificate.
func startTLS(t *testing.T, cert tls.Certificate) (addr string) {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(cert.Leaf)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
	})
	if err != nil {
		t.Fatal(err)
	}
	server := fakeserver.NewServer()
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { server.Serve(nc) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		server.CloseConns()
		wg.Wait()
	})
	return l.Addr().String()
}

func TestTLS(t *testing.T) {
	cert, certFile, keyFile := certificate(t)
	addr := startTLS(t, cert)
	plain := startServer(t).addr
	mine := []string{"--tls-ca", certFile, "--tls-cert", certFile, "--tls-key", keyFile}
	for name, c := range map[string]struct {
		addr   string
		args   []string
		stderr string // of ping; empty for success
	}{
		"all is well":         {addr, mine, ""},
		"other name":          {addr, append(slices.Clone(mine), "--tls-server-name", "node.test"), ""},
		"wrong name":          {addr, append(slices.Clone(mine), "--tls-server-name", "other.test"), "not other.test"},
		"unknown authority":   {addr, []string{"--tls"}, "certificate signed by unknown authority"},
		"no own certificate":  {addr, []string{"--tls-ca", certFile}, "certificate required"},
		"plain to TLS":        {addr, nil, "add --tls"},
		"TLS to a plain port": {plain, mine, "leave the --tls flags out"},
	} {
		t.Run(name, func(t *testing.T) {
			o := command(t.Context(), nil, append([]string{"ping", "-c", "1", "--addr", c.addr}, c.args...)...)
			if (o.code == 0) != (c.stderr == "") || !strings.Contains(o.stderr, c.stderr) {
				t.Errorf("ping: %+v; want %q", o, c.stderr)
			}
			if c.stderr != "" {
				return
			}
			args := append([]string{"--addr", c.addr}, c.args...)
			token := command(t.Context(), nil, append([]string{"acquire", "job"}, args...)...)
			if o := command(t.Context(), nil, append([]string{"release", "job", strings.TrimSpace(token.stdout)}, args...)...); token.code != 0 || o.code != 0 {
				t.Errorf("acquire: %+v, release: %+v", token, o)
			}
		})
	}
}
