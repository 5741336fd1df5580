package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

const healthTimeout = 3 * time.Second

// checkHealth asks the node that this configuration is of whether it is ready. Anything but a prompt yes is an error.
func checkHealth(ctx context.Context, addr listenAddr) error {
	target, err := localTarget(addr)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+target+"/readyz", nil)
	if err != nil {
		return err
	}
	// No proxy: what the environment says about those is for the way out.
	client := http.Client{Transport: &http.Transport{Proxy: nil, DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 500)) // as much of the reason as there is
	return fmt.Errorf("%s: %s", resp.Status, strings.TrimSpace(string(body)))
}

// localTarget is how a process on the same machine reaches what listens at addr.
func localTarget(addr listenAddr) (string, error) {
	host, port, err := splitAddr(string(addr))
	if err != nil {
		return "", err
	}
	if port == 0 {
		return "", errors.New("HOLDFAST_HTTP_ADDR has port 0: nobody can know which one the node was given")
	}
	switch ip, err := netip.ParseAddr(host); {
	case host == "" || err == nil && ip.Unmap() == netip.IPv4Unspecified():
		host = "127.0.0.1"
	case err == nil && ip == netip.IPv6Unspecified():
		host = "::1"
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port))), nil
}
