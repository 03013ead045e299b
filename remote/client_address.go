package remote

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kind says how a server is reached.
type Kind uint8

// The kinds of address.
const (
	TCP  Kind = iota + 1 // Host and Port
	Unix                 // Path of a socket
	SSH                  // User, Host, Port and Workspace
)

// Address is where a server is. The zero value is none.
type Address struct {
	Kind Kind
	Host string // a name or an IP, without brackets
	Port int    // 0 for ssh: what its configuration says
	Path string // of a Unix socket
	User string // for ssh; empty: what its configuration says
	// Workspace is the directory on the far side of ssh: absolute, or "~" and what is
	// below the home directory there.
	Workspace string
}

// isHost and isUser tell names as they may stand on a command line of ssh: nothing in
// them is an option, a list or a word of a shell.
func isHost(name string) bool {
	return madeOf(name, 1, 253, "._-") && name[0] != '.' && name[0] != '-'
}

func isUser(name string) bool {
	return madeOf(name, 1, 64, "._+-") && name[0] != '.' && name[0] != '+' && name[0] != '-'
}

// ParseAddress reads an address as a person writes it: HOST, HOST:PORT,
// http://HOST:PORT, [IPV6], [IPV6]:PORT, unix:PATH or ssh://[USER@]HOST[:PORT]/PATH.
func ParseAddress(text string) (Address, error) {
	a, err := parseAddress(text)
	if err != nil {
		return Address{}, hint(fmt.Errorf("server address %q: %w", clip(text, 200), err), addressHint)
	}
	return a, nil
}

const addressHint = "write HOST, HOST:PORT, [IPV6]:PORT, unix:PATH or ssh://[USER@]HOST[:PORT]/WORKSPACE"

func parseAddress(text string) (Address, error) {
	if err := checkAddressText(text); err != nil {
		return Address{}, err
	}
	scheme, rest, found := strings.Cut(text, "://")
	switch {
	case strings.HasPrefix(text, "unix:"):
		return unixAddress(strings.TrimPrefix(text, "unix:"))
	case !found:
		return tcpAddress(text)
	case scheme == "http":
		return tcpAddress(strings.TrimSuffix(rest, "/"))
	case scheme == "https":
		return Address{}, fmt.Errorf("servers speak no TLS; reach it through ssh (ssh://HOST/WORKSPACE, or ssh -L) or a VPN")
	case scheme == "ssh":
		return sshAddress(rest)
	}
	return Address{}, fmt.Errorf("unknown kind %q", scheme)
}

// maxAddress bounds an address in bytes: a path of 4096 and what stands before it.
const maxAddress = 4096 + 512

func checkAddressText(text string) error {
	switch {
	case text == "":
		return fmt.Errorf("it is empty")
	case len(text) > maxAddress:
		return fmt.Errorf("it is too long")
	case !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("it has characters that do not print")
	}
	return nil
}

func unixAddress(path string) (Address, error) {
	const longest = 107 // bytes of sun_path on Linux, less its end
	switch {
	case path == "":
		return Address{}, fmt.Errorf("the path of the socket is missing")
	case path[0] == '@':
		return Address{}, fmt.Errorf("abstract sockets are not used: they have no owner")
	case len(path) > longest:
		return Address{}, fmt.Errorf("the path of a socket has at most %d bytes", longest)
	}
	return Address{Kind: Unix, Path: path}, nil
}

func tcpAddress(text string) (Address, error) {
	if strings.Contains(text, "@") {
		return Address{}, fmt.Errorf("a server has no users: the token says who you are")
	}
	host, port, err := hostPort(text)
	if err != nil {
		return Address{}, err
	}
	if host == "unix" {
		return Address{}, fmt.Errorf("a socket is written unix:PATH, and a host of this name by its IP or its whole name")
	}
	if port == 0 {
		port = DefaultPort
	}
	return Address{Kind: TCP, Host: host, Port: port}, nil
}

// sshAddress reads [USER@]HOST[:PORT]/PATH. The path is taken as it is; /~/X is X
// below the home directory.
func sshAddress(text string) (Address, error) {
	target, path, found := strings.Cut(text, "/")
	if !found {
		return Address{}, fmt.Errorf("the workspace is missing: ssh://%s/PATH", target)
	}
	a := Address{Kind: SSH, Workspace: "/" + path}
	if path == "~" || strings.HasPrefix(path, "~/") {
		a.Workspace = path
	}
	if user, host, named := strings.Cut(target, "@"); named {
		if !isUser(user) {
			return Address{}, fmt.Errorf("the user %q: it has A-Z a-z 0-9 . _ + - and does not begin with one of . + -", user)
		}
		a.User, target = user, host
	}
	var err error
	a.Host, a.Port, err = hostPort(target)
	return a, err
}

// hostPort reads HOST, HOST:PORT, [IPV6] or [IPV6]:PORT; port is 0 when there is none.
func hostPort(text string) (host string, port int, err error) {
	if inner, ok := strings.CutPrefix(text, "["); ok {
		host, rest, closed := strings.Cut(inner, "]")
		addr, perr := netip.ParseAddr(host)
		if !closed || perr != nil || !addr.Is6() || !plainZone(addr.Zone()) || rest != "" && rest[0] != ':' {
			return "", 0, fmt.Errorf("%q is no IPv6 address in brackets", text)
		}
		if rest == "" {
			return host, 0, nil
		}
		port, err = portNumber(rest[1:])
		return host, port, err
	}
	if strings.Count(text, ":") > 1 {
		return "", 0, fmt.Errorf("an IPv6 address stands in brackets: [%s]", text)
	}
	host, digits, named := strings.Cut(text, ":")
	if !isHost(host) {
		return "", 0, fmt.Errorf("the host %q: it has A-Z a-z 0-9 . _ - and does not begin with one of . -", host)
	}
	if named {
		port, err = portNumber(digits)
	}
	return host, port, err
}

// plainZone reports whether a zone is a plain interface name.
func plainZone(zone string) bool { return zone == "" || isHost(zone) }

func portNumber(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 || text[0] == '0' {
		return 0, fmt.Errorf("the port %q: it is a number from 1 to 65535", text)
	}
	return int(n), nil
}

// String is the address as ParseAddress reads it.
func (a Address) String() string {
	switch a.Kind {
	case TCP:
		return net.JoinHostPort(a.Host, strconv.Itoa(a.Port))
	case Unix:
		return "unix:" + a.Path
	case SSH:
		return "ssh://" + a.Target() + "/" + strings.TrimPrefix(a.Workspace, "/")
	}
	return ""
}

// Target is [USER@]HOST[:PORT], as a person is shown where ssh goes.
func (a Address) Target() string {
	host := a.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if a.User != "" {
		host = a.User + "@" + host
	}
	if a.Port != 0 {
		host += ":" + strconv.Itoa(a.Port)
	}
	return host
}
