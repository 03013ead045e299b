package remote

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"net/netip"
	"strings"
)

// guard decides, from the header alone, who may ask for anything.
type guard struct {
	private bool // the way that requests come is nobody else's
	token   [sha256.Size]byte
	names   map[string]bool
	page    Page // may ask, with a login in place of the token; nil: no page may
}

func newGuard(cfg Config) guard {
	g := guard{
		private: cfg.Token == "", token: sha256.Sum256([]byte(cfg.Token)),
		names: map[string]bool{"localhost": true}, page: cfg.Page,
	}
	for _, name := range cfg.AllowHosts {
		g.names[plainHost(name)] = true
	}
	return g
}

// admit returns who sent a request that is let in. Nothing in the body counts.
func (g *guard) admit(r *http.Request) (visitor, error) {
	if g.private {
		return visitor{}, nil
	}
	if err := g.address(r); err != nil {
		return visitor{}, err
	}
	tokens := r.Header.Values("Authorization")
	if len(tokens) == 0 && g.page != nil {
		if ended, ok := g.page.Login(r); ok {
			return visitor{g.page, ended}, nil
		}
	}
	if !g.authorised(tokens) {
		return visitor{}, refuse(http.StatusUnauthorized, "the token is missing or wrong")
	}
	return visitor{}, nil
}

// address checks by which name a request comes, and from whose page.
func (g *guard) address(r *http.Request) error {
	if !g.knows(r.Host) {
		return refuse(http.StatusMisdirectedRequest, "this server is not called %q; --allow-host NAME adds a name", clip(r.Host, 200))
	}
	if origins := r.Header.Values("Origin"); len(origins) > 0 {
		if g.page == nil || len(origins) > 1 || origins[0] != "http://"+r.Host {
			return refuse(http.StatusForbidden, "requests from web pages of others are refused")
		}
	}
	return nil
}

// authorised compares digests, in a time that says nothing of the token.
func (g *guard) authorised(values []string) bool {
	if len(values) != 1 {
		return false
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	given := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(given[:], g.token[:]) == 1 && strings.EqualFold(scheme, "Bearer")
}

// knows reports whether a Host header names this server: any IP address, since a
// name that somebody else can point at us is what it guards against, or a known name.
// The port does not count.
func (g *guard) knows(host string) bool {
	if inner, ok := strings.CutPrefix(host, "["); ok {
		name, port, closed := strings.Cut(inner, "]")
		return closed && isIP(name) && (port == "" || port[0] == ':' && isDigits(port[1:]))
	}
	name, port, named := strings.Cut(host, ":")
	if named && !isDigits(port) {
		return false
	}
	return isIP(name) || g.names[plainHost(name)]
}

func isIP(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil
}

// plainHost is a name as it is compared.
func plainHost(name string) string {
	return strings.ToLower(strings.TrimSuffix(name, "."))
}
