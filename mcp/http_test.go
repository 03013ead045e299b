package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	spec "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"zcoder/tools"
)

// library is a server made with mcp-go, for the transports that are its own.
func library() *server.MCPServer {
	s := server.NewMCPServer("library", "2", server.WithToolCapabilities(true))
	s.AddTool(spec.NewTool("get_echo", spec.WithDescription("Echoes."), spec.WithString("text", spec.Required())), echoed)
	return s
}

func echoed(_ context.Context, r spec.CallToolRequest) (*spec.CallToolResult, error) {
	return spec.NewToolResultText("echo: " + r.GetString("text", "")), nil
}

// web is a server over HTTP that notes what it was asked.
type web struct {
	*httptest.Server
	mu       sync.Mutex
	methods  []string // of JSON-RPC
	headers  []http.Header
	refuse   string // a method that is not known
	handlers map[string]http.HandlerFunc
}

func serveWeb(t *testing.T, next http.Handler) *web {
	w := &web{handlers: map[string]http.HandlerFunc{}}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		_ = json.Unmarshal(body, &m)
		w.mu.Lock()
		w.methods, w.headers = append(w.methods, m.Method), append(w.headers, r.Header.Clone())
		refuse, own := w.refuse, w.handlers[r.URL.Path]
		w.mu.Unlock()
		switch {
		case own != nil:
			own(rw, r)
		case m.Method != "" && m.Method == refuse:
			rw.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(rw, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"method not found"}}`, m.ID)
		default:
			next.ServeHTTP(rw, r)
		}
	}))
	t.Cleanup(w.Close)
	return w
}

func TestHTTPServersOfBothGenerations(t *testing.T) {
	for name, refuse := range map[string]string{"2026-07-28": "", "2025-11-25": "server/discover"} {
		t.Run(name, func(t *testing.T) {
			lib := library()
			w := serveWeb(t, server.NewStreamableHTTPServer(lib))
			w.refuse = refuse
			b := newBench(t)
			b.env["TEAM"] = "blue"
			b.write(User, "web", `{"url":"`+w.URL+`/mcp","headers":{"X-Team":"${TEAM}"}}`)
			h := b.run()
			tool := offered(t, h)["mcp__web__get_echo"]
			if res := call(t.Context(), t, tool, `{"text":"x"}`, nil); res.Text != "echo: x" {
				t.Fatalf("result = %+v", res)
			}
			s, err := h.Server("web")
			if err != nil || s.Protocol != name {
				t.Errorf("protocol %q, %v", s.Protocol, err)
			}
			w.mu.Lock()
			for i, header := range w.headers {
				if w.methods[i] != "" && header.Get("X-Team") != "blue" {
					t.Errorf("%s went without the header", w.methods[i])
				}
			}
			w.mu.Unlock()
			// A change that the server announces is noticed without a call.
			lib.AddTool(spec.NewTool("get_more"), echoed)
			waitFor(t, func() bool {
				return strings.Contains(strings.Join(h.Refresh(t.Context()).Notices, "\n"), "get_more")
			}, "the announcement is lost")
		})
	}
}

func TestSSEServers(t *testing.T) {
	for name, kind := range map[string]string{"by its type": `"type":"sse",`, "found out": ""} {
		t.Run(name, func(t *testing.T) {
			var sse *server.SSEServer
			w := serveWeb(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { sse.ServeHTTP(rw, r) }))
			sse = server.NewSSEServer(library(), server.WithBaseURL(w.URL))
			b := newBench(t)
			b.write(User, "web", `{`+kind+`"url":"`+w.URL+`/sse"}`)
			h := b.run()
			t.Cleanup(w.CloseClientConnections)
			if res := call(t.Context(), t, offered(t, h)["mcp__web__get_echo"], `{"text":"x"}`, nil); res.Text != "echo: x" {
				logs, _ := h.Logs("web")
				t.Fatalf("result = %+v; log %v", res, logs)
			}
		})
	}
}

func TestHTTPServersThatMisbehave(t *testing.T) {
	if testing.Short() {
		t.Skip("it moves tens of megabytes, which takes long under the race detector")
	}
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}, "redirects to another host"},
		"page":       {func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "<html>hello") }, "unexpected content type"},
		"login":      {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, "wants a login"},
		"big answer": {endlessJSON, "more than 8 MiB"},
		"big event":  {endlessEvent, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewServer(c.handler)
			defer w.Close()
			b := newBench(t)
			b.write(User, "web", `{"url":"`+w.URL+`/mcp","startupTimeout":30}`)
			h := b.run()
			_, err := h.ReviewTools(t.Context(), "web")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error = %v; want %q in it", err, c.want)
			}
		})
	}
}

// endlessJSON writes one JSON string until the client leaves.
func endlessJSON(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	block := []byte(strings.Repeat("z", 1<<20))
	_, err := w.Write([]byte(`{"result":"`))
	for err == nil {
		_, err = w.Write(block)
	}
}

func endlessEvent(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	block := []byte("data: " + strings.Repeat("z", 1<<20) + "\n")
	var err error
	for err == nil {
		_, err = w.Write(block)
	}
}

func TestASessionThatTheServerForgotIsStartedAnew(t *testing.T) {
	handler := server.NewStreamableHTTPServer(library(), server.WithStateful(true))
	var mu sync.Mutex
	w := serveWeb(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		h := handler
		mu.Unlock()
		h.ServeHTTP(rw, r)
	}))
	w.refuse = "server/discover"
	b := newBench(t)
	b.write(User, "web", `{"url":"`+w.URL+`/mcp"}`)
	h := b.run()
	tool := offered(t, h)["mcp__web__get_echo"]
	mu.Lock()
	handler = server.NewStreamableHTTPServer(library(), server.WithStateful(true))
	mu.Unlock()
	first := call(t.Context(), t, tool, `{"text":"x"}`, nil)
	if first.Status == tools.OK {
		t.Skip("the server did not forget the session")
	}
	if res := call(t.Context(), t, tool, `{"text":"y"}`, nil); res.Text != "echo: y" {
		t.Errorf("after the session was lost (%s): %+v", first.Text, res)
	}
}

// authority is an authorization server that says yes to everybody.
func authority(w *web) {
	answer := func(v any) http.HandlerFunc {
		return func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(rw).Encode(v)
		}
	}
	w.handlers["/.well-known/oauth-protected-resource/mcp"] = answer(map[string]any{"resource": w.URL + "/mcp", "authorization_servers": []string{w.URL}})
	w.handlers["/.well-known/oauth-authorization-server"] = answer(map[string]any{
		"issuer": w.URL, "authorization_endpoint": w.URL + "/authorize", "token_endpoint": w.URL + "/token", "registration_endpoint": w.URL + "/register",
		"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
	})
	w.handlers["/register"] = func(rw http.ResponseWriter, r *http.Request) {
		rw.WriteHeader(http.StatusCreated)
		fmt.Fprint(rw, `{"client_id":"we"}`)
	}
	w.handlers["/token"] = func(rw http.ResponseWriter, r *http.Request) {
		if r.FormValue("client_id") != "we" || r.FormValue("code") != "c0de" && r.FormValue("refresh_token") != "again" {
			http.Error(rw, `{"error":"invalid_grant"}`, http.StatusBadRequest)
			return
		}
		rw.Header().Set("Content-Type", "application/json")
		fmt.Fprint(rw, `{"access_token":"t0ken","token_type":"bearer","refresh_token":"again","expires_in":3600}`)
	}
}

func TestOAuthLogin(t *testing.T) {
	next := server.NewStreamableHTTPServer(library())
	var w *web
	w = serveWeb(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer t0ken" {
			rw.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+w.URL+`/.well-known/oauth-protected-resource/mcp"`)
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(rw, r)
	}))
	authority(w)
	b := newBench(t)
	b.write(User, "web", `{"url":"`+w.URL+`/mcp"}`)
	h := b.run()
	if _, err := h.ReviewTools(t.Context(), "web"); !errors.Is(err, errLogin) {
		t.Fatalf("before the login: %v", err)
	}
	err := h.Login(t.Context(), "web", func(address string) {
		u, err := url.Parse(address)
		if err != nil || u.Path != "/authorize" || u.Query().Get("code_challenge_method") != "S256" || u.Query().Get("resource") != w.URL+"/mcp" {
			t.Errorf("address %s, %v", address, err)
		}
		back := u.Query().Get("redirect_uri") + "?code=c0de&state=" + url.QueryEscape(u.Query().Get("state"))
		go func() {
			if resp, err := http.Get(back); err == nil {
				resp.Body.Close()
			}
		}()
	})
	if err != nil {
		t.Fatal(err)
	}
	file := tokensFor(b.home, w.URL+"/mcp").path
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the tokens: %v, %v", info, err)
	}
	if res := call(t.Context(), t, offered(t, h)["mcp__web__get_echo"], `{"text":"x"}`, nil); res.Text != "echo: x" {
		t.Errorf("after the login: %+v", res)
	}
	// A token that ran out is renewed and stored.
	g, err := tokensFor(b.home, w.URL+"/mcp").load()
	if err != nil {
		t.Fatal(err)
	}
	g.Token.AccessToken, g.Token.ExpiresAt = "old", time.Now().Add(-time.Hour)
	if err := tokensFor(b.home, w.URL+"/mcp").save(g); err != nil {
		t.Fatal(err)
	}
	if err := h.Restart("web"); err != nil {
		t.Fatal(err)
	}
	if res := call(t.Context(), t, offered(t, h)["mcp__web__get_echo"], `{"text":"x"}`, nil); res.Text != "echo: x" {
		t.Errorf("after the token ran out: %+v", res)
	}
	if err := h.Logout("web"); err != nil {
		t.Fatal(err)
	}
	if err := h.Logout("web"); err == nil {
		t.Error("a second logout found something")
	}
}

func TestAnInProcessServer(t *testing.T) {
	lib := library()
	b := newBench(t)
	b.options = func(o *Options) {
		o.Transport = func(Entry) (transport.Interface, error) { return transport.NewInProcessTransport(lib), nil }
	}
	b.write(User, "in", `{"command":"true"}`)
	h := b.run()
	tool := offered(t, h)["mcp__in__get_echo"]
	if res := call(t.Context(), t, tool, `{"text":"x"}`, nil); res.Text != "echo: x" {
		t.Errorf("result = %+v", res)
	}
	lib.DeleteTools("get_echo")
	lib.AddTool(spec.NewTool("get_echo", spec.WithDescription("Another.")), echoed)
	waitFor(t, func() bool { return len(h.Refresh(t.Context()).Tools) == 0 }, "a redefined tool stays")
}
