package remote

import (
	"net/http"
	"strings"

	"zcoder/internal/event"
)

// Page is a web page that a server offers beside the protocol. Its methods may be
// called from several goroutines.
type Page interface {
	// Handler answers requests for / and what is below /web/, of anybody. The server has
	// checked their Host, and their Origin if they have one.
	http.Handler
	// Login reports whether a request comes from a browser that somebody logged in with
	// on the page; ended is closed when that is over.
	Login(r *http.Request) (ended <-chan struct{}, ok bool)
	// Show returns what the page shows of a question, as a value for JSON. It goes with
	// the question itself on the streams of browsers.
	Show(q event.Question) any
}

// visitor is who sent an admitted request.
type visitor struct {
	page  Page            // nil: a client with the token
	ended <-chan struct{} // closed when the login on the page is over
}

// forPage reports whether a request is for the page.
func (s *Server) forPage(r *http.Request) bool {
	path := r.URL.EscapedPath()
	return s.cfg.Page != nil && (path == "/" || path == "/favicon.ico" || strings.HasPrefix(path, "/web/"))
}

func (s *Server) servePage(w http.ResponseWriter, r *http.Request) {
	if err := s.guard.address(r); err != nil {
		s.reject(w, r, err)
		return
	}
	s.cfg.Page.ServeHTTP(w, r)
}

// pageEnvelope is a question on the stream of a browser.
type pageEnvelope struct {
	Envelope
	Shown any `json:"shown"`
}
