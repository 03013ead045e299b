// Package web is the page that a server shows to browsers: its files, who is logged in
// there, and how a question is shown. It knows HTTP and safe text. What the page does in
// the conversation goes by the routes of package remote, which asks this package whom a
// request comes from.
package web

import (
	"crypto/sha256"
	"embed"
	"encoding/json"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"
)

//go:embed static
var files embed.FS

// Config is what a page needs. All of it is required.
type Config struct {
	// Token lets people log in.
	Token string
	// AfterFunc is time.AfterFunc: it calls f in its own goroutine, unless stop comes
	// first.
	AfterFunc func(d time.Duration, f func()) (stop func() bool)
}

// Page is a server's page. It may be used from several goroutines. Whoever serves it
// has checked the Host of a request, and its Origin if it has one.
type Page struct {
	token [sha256.Size]byte
	after func(d time.Duration, f func()) (stop func() bool)

	mu     sync.Mutex
	logins []*login // the one that was used last comes last
}

// New makes a page that nobody is logged in on.
func New(cfg Config) *Page {
	return &Page{token: sha256.Sum256([]byte(cfg.Token)), after: cfg.AfterFunc}
}

// policy allows the page its own files and its own server, and nothing else: a text
// that became markup could run and load nothing.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'none'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// secure sets the headers that every answer of the page has.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// ServeHTTP answers a request for the page itself: its files, logging in and out.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	where := r.Method + " " + r.URL.EscapedPath()
	switch {
	case r.URL.RawQuery != "" || r.URL.ForceQuery:
		fail(w, http.StatusBadRequest, "the addresses of the page have no query; a token never stands in an address")
	case where == "POST /web/login":
		p.postLogin(w, r)
	case where == "POST /web/logout":
		p.postLogout(w, r)
	case where == "GET /":
		p.file(w, "index.html")
	case strings.HasPrefix(where, "GET /web/"):
		p.file(w, strings.TrimPrefix(where, "GET /web/"))
	default:
		fail(w, http.StatusNotFound, "there is no such page")
	}
}

func (p *Page) file(w http.ResponseWriter, name string) {
	kinds := map[string]string{".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
	data, err := files.ReadFile(path.Join("static", path.Base(name)))
	if err != nil || path.Base(name) != name {
		fail(w, http.StatusNotFound, "there is no such page")
		return
	}
	w.Header().Set("Content-Type", kinds[path.Ext(name)]+"; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	_, _ = w.Write(data) // a browser that does not get it asks again
}

func fail(w http.ResponseWriter, status int, text string) {
	say(w, status, map[string]string{"error": text})
}

func say(w http.ResponseWriter, status int, body map[string]string) {
	data, err := json.Marshal(body)
	if err != nil { // texts alone
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data)
}

// maxLogin bounds what is sent to log in, in bytes.
const maxLogin = 8192

// readToken reads the one field of a login. Only a script of the page can send JSON: a
// form of another page cannot.
func readToken(w http.ResponseWriter, r *http.Request) (string, bool) {
	if r.Header.Get("Content-Type") != "application/json" {
		return "", false
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxLogin))
	var in struct {
		Token string `json:"token"`
	}
	if err != nil || json.Unmarshal(data, &in) != nil {
		return "", false
	}
	return strings.TrimSpace(in.Token), true
}
