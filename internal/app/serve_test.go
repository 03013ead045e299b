package app

import (
	"bytes"
	"net"
	"os"
	"strings"
	"testing"
)

func TestAnnouncePage(t *testing.T) {
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		addr net.Addr
		says string
		warn bool
	}{
		{"this machine", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7337}, "http://127.0.0.1:7337/ and log in with the token in '/a b'", false},
		{"this machine, IPv6", &net.TCPAddr{IP: net.IPv6loopback, Port: 80}, "http://[::1]:80/ ", false},
		{"one address", &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}, "http://192.0.2.1:1/ ", true},
		{"every address", &net.TCPAddr{IP: net.IPv6unspecified, Port: 1}, "http://" + name + ":1/ ", true},
		{"a socket", &net.UnixAddr{Name: "/s", Net: "unix"}, "ssh -L 7337:SOCKET", false},
	} {
		var out bytes.Buffer
		announcePage(&out, c.addr, "/a b")
		if got := out.String(); !strings.Contains(got, c.says) || strings.Contains(got, "warning: the page") != c.warn {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}
