package modelserver

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// parseHost reads an address as Ollama reads OLLAMA_HOST, with two differences: a
// port out of range is an error instead of the default, and an address to listen on
// (0.0.0.0, [::], or none) becomes the loopback address, since it is dialled.
func parseHost(text string) (*url.URL, error) {
	s := strings.TrimSpace(strings.Trim(strings.TrimSpace(text), `"'`))
	if strings.ContainsAny(s, "@?#\\ \t\r\n") {
		return nil, fmt.Errorf("read host: expected [http[s]://]host[:port][/path] without user, query or blanks")
	}
	scheme, rest, port, err := splitScheme(s)
	if err != nil {
		return nil, err
	}
	rest, path, _ := strings.Cut(rest, "/")
	host, explicit := splitPort(rest)
	if explicit != "" {
		port = explicit
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return nil, fmt.Errorf("read host %q: port %q is not in 1–65535", text, port)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	if path, err = url.PathUnescape(strings.Trim(path, "/")); err != nil {
		return nil, fmt.Errorf("read host %q: %w", text, err)
	}
	if addr, err := netip.ParseAddr(strings.Replace(host, "%25", "%", 1)); err == nil && !strings.ContainsFunc(addr.Zone(), notInName) {
		host = dialAddress(addr)
	} else if strings.ContainsFunc(host, notInName) {
		return nil, fmt.Errorf("read host %q: %q is no address", text, host)
	}
	u := &url.URL{Scheme: scheme, Host: net.JoinHostPort(host, port)}
	if path != "" {
		u.Path = "/" + path
	}
	return u, nil
}

// splitScheme separates the scheme and tells the port that goes with it.
func splitScheme(s string) (scheme, rest, port string, err error) {
	scheme, rest, ok := strings.Cut(s, "://")
	switch scheme = strings.ToLower(scheme); {
	case !ok && s == "ollama.com": // as Ollama has it
		return "https", s, "443", nil
	case !ok:
		return "http", s, "11434", nil
	case scheme == "http":
		return scheme, rest, "80", nil
	case scheme == "https":
		return scheme, rest, "443", nil
	}
	return "", "", "", fmt.Errorf("read host %q: scheme %q is neither http nor https", s, scheme)
}

// notInName reports characters that no host name has; names in other scripts pass.
func notInName(r rune) bool {
	return r < 0x80 && !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' || r == '_')
}

// splitPort separates the port, if any, from a host that may be an IPv6 address
// with or without brackets.
func splitPort(s string) (host, port string) {
	if host, port, err := net.SplitHostPort(s); err == nil {
		return host, port
	}
	return strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"), ""
}

// dialAddress is the address to dial for one that may be an address to listen on.
func dialAddress(a netip.Addr) string {
	switch {
	case !a.IsUnspecified():
		return a.String()
	case a.Is4():
		return "127.0.0.1"
	}
	return "::1"
}

// isLoopback reports whether a host name surely means this machine.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}
