package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
)

// tokenDir is the directory in $ZCODER_HOME that holds tokens, one private file for
// each server's address.
const tokenDir = "mcp-tokens"

// loginPatience is how long a person may take to log in.
const loginPatience = 5 * time.Minute

// grant is what is stored after a person logged in to a server.
type grant struct {
	ClientID     string          `json:"clientId"`
	ClientSecret string          `json:"clientSecret,omitempty"`
	AuthMethod   string          `json:"authMethod,omitempty"`
	Token        transport.Token `json:"token"`
}

// tokens is the file of one address. It implements transport.TokenStore.
type tokens struct{ path string }

func tokensFor(home, address string) tokens {
	sum := sha256.Sum256([]byte(address))
	return tokens{filepath.Join(home, tokenDir, hex.EncodeToString(sum[:16])+".json")}
}

func (t tokens) load() (grant, error) {
	var g grant
	data, err := os.ReadFile(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return g, transport.ErrNoToken
	}
	if err == nil {
		err = json.Unmarshal(data, &g)
	}
	if err != nil {
		return g, fmt.Errorf("read the server's token: %w", err)
	}
	return g, nil
}

func (t tokens) save(g grant) error {
	if err := os.MkdirAll(filepath.Dir(t.path), 0o700); err != nil {
		return fmt.Errorf("store the server's token: %w", err)
	}
	data, err := encode(g)
	if err == nil {
		err = replaceFile(t.path, data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("store the server's token: %w", err)
	}
	return nil
}

// GetToken returns the stored token, or transport.ErrNoToken.
func (t tokens) GetToken(ctx context.Context) (*transport.Token, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	g, err := t.load()
	if err != nil {
		return nil, err
	}
	return &g.Token, nil
}

// SaveToken stores a token that was renewed.
func (t tokens) SaveToken(ctx context.Context, token *transport.Token) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	g, err := t.load()
	if err != nil && !errors.Is(err, transport.ErrNoToken) {
		return err
	}
	g.Token = *token
	return t.save(g)
}

// oauth returns the authorization for a server that a person logged in to.
func (d *dialer) oauth(e Entry) (transport.OAuthConfig, bool) {
	store := tokensFor(d.home, e.ready.URL)
	g, err := store.load()
	if err != nil {
		return transport.OAuthConfig{}, false
	}
	return transport.OAuthConfig{
		ClientID: g.ClientID, ClientSecret: g.ClientSecret, TokenEndpointAuthMethod: g.AuthMethod,
		Scopes: e.ready.OAuth.Scopes, TokenStore: store, PKCEEnabled: true, HTTPClient: d.web,
	}, true
}

// Login has a person log in to a server with a browser: show gets the address to
// open, and the answer comes back to a port of this machine. The tokens are stored
// privately. It blocks until then, at most five minutes.
func (h *Hub) Login(ctx context.Context, name string, show func(address string)) error {
	e, err := h.entry(name)
	if err != nil {
		return err
	}
	if e.Kind == Stdio {
		return fmt.Errorf("server %q is a program; only servers with a URL have logins", name)
	}
	if e.Standing != Ready {
		return fmt.Errorf("server %q is %s: %s", name, e.Standing, e.Why)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, loginPatience, errors.New("nobody logged in within five minutes"))
	defer cancel()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for the answer of the login: %w", err)
	}
	l := &login{
		store: tokensFor(h.o.Home, e.ready.URL),
		config: transport.OAuthConfig{
			ClientID: e.ready.OAuth.ClientID, ClientSecret: e.ready.OAuth.ClientSecret, Scopes: e.ready.OAuth.Scopes,
			RedirectURI: "http://" + listener.Addr().String() + "/callback", PKCEEnabled: true, HTTPClient: h.dial.web,
		},
		answer: make(chan url.Values, 1),
	}
	return l.run(ctx, listener, e.ready.URL, h.o.Version, show)
}

// Logout forgets the tokens of a server.
func (h *Hub) Logout(name string) error {
	e, err := h.entry(name)
	if err != nil {
		return err
	}
	err = os.Remove(tokensFor(h.o.Home, e.ready.URL).path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no login to server %q", name)
	}
	return err
}

// login is one login in progress.
type login struct {
	store  tokens
	config transport.OAuthConfig
	answer chan url.Values
}

func (l *login) run(ctx context.Context, listener net.Listener, address, version string, show func(string)) error {
	server := &http.Server{Handler: http.HandlerFunc(l.callback), ReadHeaderTimeout: connectTimeout}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // it ends with Close below
	}()
	defer func() { _ = server.Close(); <-served }()

	memory := transport.NewMemoryTokenStore()
	l.config.TokenStore = memory
	handler := transport.NewOAuthHandler(l.config)
	handler.SetBaseURL(bare(address))
	if err := l.discover(ctx, handler, address); err != nil {
		return err
	}
	if l.config.ClientID == "" {
		if err := handler.RegisterClient(ctx, "zcoder "+version); err != nil {
			return fmt.Errorf("register with the authorization server: %w", err)
		}
	}
	if err := l.authorise(ctx, handler, show); err != nil {
		return err
	}
	token, err := memory.GetToken(ctx)
	if err != nil {
		return err
	}
	return l.store.save(grant{
		ClientID: handler.GetClientID(), ClientSecret: handler.GetClientSecret(), AuthMethod: handler.GetTokenEndpointAuthMethod(), Token: *token,
	})
}

// bare is an address without query and fragment.
func bare(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	u.RawQuery, u.Fragment = "", ""
	return u.String()
}

// discover asks the server without a token, since its refusal says where its
// authorization server is described.
func (l *login) discover(ctx context.Context, handler *transport.OAuthHandler, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := l.config.HTTPClient.Do(req)
	if err != nil {
		return fmt.Errorf("reach the server: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusUnauthorized {
		handler.HandleUnauthorizedResponse(resp)
	}
	return nil
}

// authorise sends the person to the authorization server and waits for its answer.
func (l *login) authorise(ctx context.Context, handler *transport.OAuthHandler, show func(string)) error {
	verifier, err := transport.GenerateCodeVerifier()
	if err != nil {
		return err
	}
	state, err := transport.GenerateState()
	if err != nil {
		return err
	}
	where, err := handler.GetAuthorizationURL(ctx, state, transport.GenerateCodeChallenge(verifier))
	if err != nil {
		return fmt.Errorf("find the authorization server: %w", err)
	}
	if err := checkURL(where); err != nil {
		return fmt.Errorf("the authorization server gave the address %q: %w", plain(where, 200), err)
	}
	show(where)
	select {
	case answer := <-l.answer:
		if code := answer.Get("error"); code != "" {
			return fmt.Errorf("the authorization server refused: %s %s", code, answer.Get("error_description"))
		}
		return handler.ProcessAuthorizationResponse(ctx, answer.Get("code"), answer.Get("state"), verifier)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *login) callback(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/callback" {
		http.NotFound(w, r)
		return
	}
	select {
	case l.answer <- r.URL.Query():
		fmt.Fprintln(w, "zcoder has the answer. You can close this page.")
	default:
		http.Error(w, "the login is over", http.StatusGone)
	}
}
