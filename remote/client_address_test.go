package remote

import (
	"strings"
	"testing"
)

func TestParseAddress(t *testing.T) {
	tests := []struct {
		text  string
		want  Address
		error string // part of it
	}{
		{"box", Address{Kind: TCP, Host: "box", Port: 7337}, ""},
		{"box:80", Address{Kind: TCP, Host: "box", Port: 80}, ""},
		{"http://box:80", Address{Kind: TCP, Host: "box", Port: 80}, ""},
		{"http://box/", Address{Kind: TCP, Host: "box", Port: 7337}, ""},
		{"192.0.2.7:65535", Address{Kind: TCP, Host: "192.0.2.7", Port: 65535}, ""},
		{"[::1]", Address{Kind: TCP, Host: "::1", Port: 7337}, ""},
		{"[fe80::1%eth0]:9", Address{Kind: TCP, Host: "fe80::1%eth0", Port: 9}, ""},
		{"unix:/run/z/s.sock", Address{Kind: Unix, Path: "/run/z/s.sock"}, ""},
		{"unix:s", Address{Kind: Unix, Path: "s"}, ""},
		{"ssh://box/srv/app", Address{Kind: SSH, Host: "box", Workspace: "/srv/app"}, ""},
		{"ssh://me@box:2222/srv/my app", Address{Kind: SSH, User: "me", Host: "box", Port: 2222, Workspace: "/srv/my app"}, ""},
		{"ssh://box/~/src", Address{Kind: SSH, Host: "box", Workspace: "~/src"}, ""},
		{"ssh://box/~", Address{Kind: SSH, Host: "box", Workspace: "~"}, ""},
		{"ssh://box/~root", Address{Kind: SSH, Host: "box", Workspace: "/~root"}, ""},
		{"ssh://[::1]:22/w", Address{Kind: SSH, Host: "::1", Port: 22, Workspace: "/w"}, ""},
		{"ssh://me@box/a@b:c", Address{Kind: SSH, User: "me", Host: "box", Workspace: "/a@b:c"}, ""},

		{"", Address{}, "empty"},
		{"https://box", Address{}, "ssh://HOST/WORKSPACE"},
		{"ftp://box", Address{}, "unknown kind"},
		{"box:0", Address{}, "port"},
		{"box:65536", Address{}, "port"},
		{"box:080", Address{}, "port"},
		{"box:+80", Address{}, "port"},
		{"box:", Address{}, "port"},
		{":80", Address{}, "host"},
		{"::1", Address{}, "brackets"},
		{"[::1", Address{}, "brackets"},
		{"[127.0.0.1]", Address{}, "brackets"},
		{"[::1]x", Address{}, "brackets"},
		{"[::1%a b]", Address{}, "brackets"},
		{"me@box", Address{}, "no users"},
		{"box/path", Address{}, "host"},
		{"http://box/path", Address{}, "host"},
		{"bo\x1bx", Address{}, "print"},
		{"bo\u202ex", Address{}, "print"},
		{"box\n", Address{}, "print"},
		{strings.Repeat("a", 5000), Address{}, "too long"},
		{"unix:", Address{}, "missing"},
		{"unix:@name", Address{}, "abstract"},
		{"unix:/" + strings.Repeat("a", 107), Address{}, "at most"},
		{"ssh://box", Address{}, "workspace is missing"},
		{"ssh:///w", Address{}, "host"},
		{"ssh://-oProxyCommand=id/w", Address{}, "host"},
		{"ssh://-box/w", Address{}, "host"},
		{"ssh://-l@box/w", Address{}, "user"},
		{"ssh://@box/w", Address{}, "user"},
		{"ssh://a b@box/w", Address{}, "user"},
		{"ssh://a@-b@c/w", Address{}, "host"},
		{"ssh://a@b@c/w", Address{}, "host"},
		{"ssh://bo x/w", Address{}, "host"},
		{"ssh://box,other/w", Address{}, "host"},
		{"ssh://box:-1/w", Address{}, "port"},
		{"ssh://$(id)/w", Address{}, "host"},
		{"ssh://box/w\n", Address{}, "print"},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			got, err := ParseAddress(tt.text)
			if tt.error == "" && (err != nil || got != tt.want) {
				t.Fatalf("got %+v, %v; want %+v", got, err, tt.want)
			}
			if tt.error != "" && (err == nil || !strings.Contains(err.Error(), tt.error)) {
				t.Fatalf("got %+v, %v; want an error with %q", got, err, tt.error)
			}
		})
	}
}

// FuzzParseAddress: what is accepted reads the same again, and nothing of it could be
// an option or a word of a shell on a command line of ssh.
func FuzzParseAddress(f *testing.F) {
	for _, s := range []string{"box:1", "http://b", "[::1]:2", "unix:/s", "ssh://u@h:3/~/w", "ssh://-o/w", "https://x", "[fe80::1%1]", "unix", "http://unix:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ParseAddress(text)
		if err != nil {
			if a != (Address{}) {
				t.Fatalf("an error and %+v", a)
			}
			return
		}
		again, err := ParseAddress(a.String())
		if err != nil || again != a {
			t.Fatalf("%q is %+v, written %q, which is %+v, %v", text, a, a.String(), again, err)
		}
		for _, word := range []string{a.Host, a.User} {
			if strings.HasPrefix(word, "-") || strings.ContainsAny(word, " \t\r\n'\"`$;&|<>\\@/") {
				t.Fatalf("%q gives the word %q", text, word)
			}
		}
		if a.Kind == SSH && a.Workspace == "" || a.Kind == TCP && a.Port == 0 || strings.ContainsAny(a.Workspace, "\x00\n\r\x1b") {
			t.Fatalf("%q gives %+v", text, a)
		}
	})
}
