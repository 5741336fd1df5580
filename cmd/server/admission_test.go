package main

import (
	"net"
	"net/netip"
	"sync"
	"testing"
)

func TestAdmission(t *testing.T) {
	a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	ad := newAdmission(4, 2)
	enter := func(from netip.Addr, want bool) func() {
		t.Helper()
		release, ok := ad.admit(from)
		if ok != want {
			t.Fatalf("%v: admitted %v, want %v", from, ok, want)
		}
		return release
	}
	release := enter(a, true)
	enter(netip.MustParseAddr("::ffff:10.0.0.1"), true) // the same address, as a socket for both families has it
	enter(a, false)
	enter(b, true)
	enter(b, true)
	enter(netip.MustParseAddr("10.0.0.3"), false)
	release()
	enter(b, false)
	enter(a, true)
}

func TestAdmissionForgetsAddresses(t *testing.T) {
	ad := newAdmission(1000, 1)
	for i := range 256 {
		release, ok := ad.admit(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}))
		if !ok {
			t.Fatal(i)
		}
		release()
	}
	if len(ad.from) != 0 || ad.total != 0 {
		t.Errorf("%d addresses are remembered, %d connections counted, after all have gone", len(ad.from), ad.total)
	}
}

func TestAdmissionOfManyAtOnce(t *testing.T) {
	ad := newAdmission(10, 0)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				if release, ok := ad.admitHTTP(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}); ok {
					release()
				}
			}
		})
	}
	wg.Wait()
	if ad.total != 0 {
		t.Errorf("%d connections are counted after all have gone", ad.total)
	}
}

func TestConnectionLimit(t *testing.T) {
	for _, c := range []struct {
		wanted      int
		descriptors uint64
		want        int
	}{
		{50_000, 1 << 20, 50_000}, {50_000, 50_128, 50_000}, {50_000, 50_127, 49_999}, {50_000, 20_000, 19_872},
		{50_000, 128, 1}, {50_000, 3, 1}, {1, 1 << 63, 1},
	} {
		if got := bounded(c.wanted, c.descriptors); got != c.want {
			t.Errorf("%d wanted, %d descriptors: got %d, want %d", c.wanted, c.descriptors, got, c.want)
		}
	}
}
