package app

import (
	"testing"

	"zcoder/repl"
)

// enteredUI notes what is entered and what is put before the person.
type enteredUI struct {
	repl.UI
	got string
}

func (u *enteredUI) Submit(text string)   { u.got = "submit " + text }
func (u *enteredUI) SetDraft(text string) { u.got = "draft " + text }

// TestEnterForAServer: what a server wants entered runs no command of this side.
func TestEnterForAServer(t *testing.T) {
	for text, want := range map[string]string{
		"repeat this":    "submit repeat this",
		"//goal tidy":    "submit //goal tidy",
		"//queue resume": "submit //queue resume",
		"/copy":          "draft /copy",
		"/quit":          "draft /quit",
		"/edit x":        "draft /edit x",
		"/mcp trust":     "draft /mcp trust",
		"! ls":           "submit ! ls", // goes to the server, which asks
	} {
		u := &enteredUI{}
		if enter(u, text); u.got != want {
			t.Errorf("%q: %s; want %s", text, u.got, want)
		}
	}
}
