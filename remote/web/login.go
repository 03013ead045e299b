package web

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	maxLogins  = 16             // browsers at once; one more ends the one that was away longest
	lifetime   = 24 * time.Hour // of a login
	wrongToken = 500 * time.Millisecond
)

// keyHeader carries the second half of a login. A browser sends cookies to every port of
// a host, so another server on this machine may get the cookie; the key stays with the
// page, whose storage other ports cannot read, and pages of others cannot send the header.
const keyHeader = "Zcoder-Page"

// login is a browser that somebody logged in with.
type login struct {
	cookie, key [sha256.Size]byte // digests
	ended       chan struct{}     // closed at its end
	stop        func() bool       // its timer
}

// cookieName is one for each port, since cookies of all ports of a host lie together.
func cookieName(host string) string {
	port := host[strings.LastIndexByte(host, ':')+1:]
	if port == "" || strings.Trim(port, "0123456789") != "" {
		port = "80"
	}
	return "zcoder_" + port
}

// fromPage reports whether a request can come from the page: nothing that the browser
// says of its sender is against it, and one that changes something says so.
func fromPage(r *http.Request) bool {
	if sites := r.Header.Values("Sec-Fetch-Site"); len(sites) > 1 || len(sites) == 1 && sites[0] != "same-origin" {
		return false
	}
	return r.Method == http.MethodGet || len(r.Header.Values("Origin")) == 1
}

// Login reports whether a request comes from a browser that somebody logged in with;
// ended is closed when it is logged out, or the login's time is over.
func (p *Page) Login(r *http.Request) (ended <-chan struct{}, ok bool) {
	if l := p.find(r); l != nil {
		return l.ended, true
	}
	return nil, false
}

func (p *Page) find(r *http.Request) *login {
	keys := r.Header.Values(keyHeader)
	if !fromPage(r) || len(keys) != 1 {
		return nil
	}
	key := sha256.Sum256([]byte(keys[0]))
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range r.CookiesNamed(cookieName(r.Host)) {
		cookie := sha256.Sum256([]byte(c.Value))
		for i, l := range p.logins {
			if subtle.ConstantTimeCompare(cookie[:], l.cookie[:])&subtle.ConstantTimeCompare(key[:], l.key[:]) == 1 {
				p.logins = append(slices.Delete(p.logins, i, i+1), l)
				return l
			}
		}
	}
	return nil
}

func (p *Page) postLogin(w http.ResponseWriter, r *http.Request) {
	if !fromPage(r) {
		fail(w, http.StatusForbidden, "log in on the page itself")
		return
	}
	token, ok := readToken(w, r)
	if !ok {
		fail(w, http.StatusBadRequest, "a login is a JSON object with a \"token\"")
		return
	}
	given := sha256.Sum256([]byte(token))
	if subtle.ConstantTimeCompare(given[:], p.token[:]) != 1 {
		p.delay(r)
		fail(w, http.StatusUnauthorized, "this is not the token of this server")
		return
	}
	cookie, key := rand.Text(), rand.Text()
	p.enter(cookie, key)
	http.SetCookie(w, &http.Cookie{
		Name: cookieName(r.Host), Value: cookie, Path: "/", MaxAge: int(lifetime / time.Second),
		HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
	say(w, http.StatusOK, map[string]string{"key": key})
}

// delay makes guessing slow.
func (p *Page) delay(r *http.Request) {
	over := make(chan struct{})
	stop := p.after(wrongToken, func() { close(over) })
	defer stop()
	select {
	case <-over:
	case <-r.Context().Done():
	}
}

func (p *Page) enter(cookie, key string) {
	l := &login{cookie: sha256.Sum256([]byte(cookie)), key: sha256.Sum256([]byte(key)), ended: make(chan struct{})}
	l.stop = p.after(lifetime, func() { p.leave(l) })
	p.mu.Lock()
	p.logins = append(p.logins, l)
	var oldest *login
	if len(p.logins) > maxLogins {
		oldest = p.logins[0]
	}
	p.mu.Unlock()
	if oldest != nil {
		p.leave(oldest)
	}
}

// leave ends a login, once.
func (p *Page) leave(l *login) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.logins, l); i >= 0 {
		p.logins = slices.Delete(p.logins, i, i+1)
		l.stop()
		close(l.ended)
	}
}

func (p *Page) postLogout(w http.ResponseWriter, r *http.Request) {
	l := p.find(r)
	if l == nil {
		fail(w, http.StatusUnauthorized, "nobody is logged in here")
		return
	}
	p.leave(l)
	http.SetCookie(w, &http.Cookie{Name: cookieName(r.Host), Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	say(w, http.StatusOK, map[string]string{})
}
