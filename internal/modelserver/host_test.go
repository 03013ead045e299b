package modelserver

import (
	"strings"
	"testing"
)

func TestHostForms(t *testing.T) {
	tests := []struct{ name, host, want string }{
		{"nothing", "", "http://127.0.0.1:11434"},
		{"address", "1.2.3.4", "http://1.2.3.4:11434"},
		{"port", ":1234", "http://127.0.0.1:1234"},
		{"address and port", "1.2.3.4:1234", "http://1.2.3.4:1234"},
		{"name", "example.com", "http://example.com:11434"},
		{"name and port", "example.com:1234", "http://example.com:1234"},
		{"localhost", "localhost", "http://localhost:11434"},
		{"http", "http://1.2.3.4", "http://1.2.3.4:80"},
		{"http and port", "http://1.2.3.4:4321", "http://1.2.3.4:4321"},
		{"https", "https://example.com", "https://example.com:443"},
		{"https and port", "https://1.2.3.4:4321", "https://1.2.3.4:4321"},
		{"capital scheme", "HTTP://example.com", "http://example.com:80"},
		{"path", "https://example.com/ollama", "https://example.com:443/ollama"},
		{"deep path, slash at its end", "https://example.com/a/b/", "https://example.com:443/a/b"},
		{"slash at the end", "http://example.com:1/", "http://example.com:1"},
		{"path without a scheme", "example.com/ollama", "http://example.com:11434/ollama"},
		{"all addresses", "0.0.0.0", "http://127.0.0.1:11434"},
		{"all addresses and port", "0.0.0.0:1234", "http://127.0.0.1:1234"},
		{"all addresses with scheme", "http://0.0.0.0:1234", "http://127.0.0.1:1234"},
		{"all of IPv6", "[::]", "http://[::1]:11434"},
		{"all of IPv6 and port", "[::]:1234", "http://[::1]:1234"},
		{"IPv6", "[::1]", "http://[::1]:11434"},
		{"IPv6 without brackets", "::1", "http://[::1]:11434"},
		{"IPv6 and port", "[::1]:1337", "http://[::1]:1337"},
		{"IPv6 in a URL", "http://[fd00::5]:80/x", "http://[fd00::5]:80/x"},
		{"IPv6 with zone", "[fe80::1%eth0]:1337", "http://[fe80::1%25eth0]:1337"},
		{"blanks", "  1.2.3.4 \n", "http://1.2.3.4:11434"},
		{"quotes", `"1.2.3.4"`, "http://1.2.3.4:11434"},
		{"single quotes", `'1.2.3.4'`, "http://1.2.3.4:11434"},
		{"blanks and quotes", ` " 1.2.3.4 " `, "http://1.2.3.4:11434"},
		{"the hosted service", "ollama.com", "https://ollama.com:443"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := New(Options{Host: tt.host}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.URL(); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestHostErrors(t *testing.T) {
	tests := []struct{ name, host, want string }{
		{"port too large", ":66000", `port "66000" is not in 1–65535`},
		{"port zero", ":0", `port "0"`},
		{"port negative", ":-1", `port "-1"`},
		{"port a word", "localhost:http", `port "http"`},
		{"scheme", "ftp://example.com", `scheme "ftp" is neither http nor https`},
		{"user", "http://me:secret@example.com", `without user`},
		{"query", "http://example.com/?x=1", `without user`},
		{"blank inside", "two words", `blanks`},
		{"colons", "a:b:c", `"a:b:c" is no address`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := New(Options{Host: tt.host}, nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Error("the error shows a password")
			}
		})
	}
}

func FuzzHost(f *testing.F) {
	for _, s := range []string{"", ":1", "[::1]:2", "http://a/b", "1.2.3.4", "a:b:c", "'x'"} {
		f.Add(s)
	}
	// Whatever is accepted has a host and a port in range, and reads the same again.
	f.Fuzz(func(t *testing.T, s string) {
		u, err := parseHost(s)
		if err != nil {
			return
		}
		if u.Hostname() == "" || u.Port() == "" {
			t.Fatalf("%q gave %q", s, u)
		}
		if again, err := parseHost(u.String()); err == nil && again.String() != u.String() {
			t.Fatalf("%q gave %q, then %q", s, u, again)
		}
	})
}
