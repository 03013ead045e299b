package modeltext

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
)

// Field cases O16 and O17: whatever a model sent as arguments goes back as an object.
func TestO17ArgumentsGoBackAsAnObject(t *testing.T) {
	tests := []struct{ name, args, want string }{
		{"object", `{"a":1}`, `{"a":1}`},
		{"object over lines", "{\n \"a\" : 1\n}", `{"a":1}`},
		{"no HTML escapes", `{"a":"<&>"}`, `{"a":"<&>"}`},
		{"both cases of a key", `{"command":"ls","Command":"rm"}`, `{"command":"ls","Command":"rm"}`},
		{"nothing", ``, `{}`},
		{"null", `null`, `{}`},
		{"empty text", `""`, `{}`},
		{"text with an object", `"{\"path\":\"a\"}"`, `{"path":"a"}`},
		{"text in a text", `"\"{\\\"path\\\":1}\""`, `{"path":1}`},
		{"cut text", `"{\"path\": \"a"`, `{"unparsed_arguments":"{\"path\": \"a"}`},
		{"list", `[1,2]`, `{"unparsed_arguments":"[1,2]"}`},
		{"number", `7`, `{"unparsed_arguments":"7"}`},
		{"broken", `{"path":`, `{"unparsed_arguments":"{\"path\":"}`},
		{"prose", `the file a.txt`, `{"unparsed_arguments":"the file a.txt"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(AppendObject(nil, json.RawMessage(tt.args))); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestAppendString(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", "abc", `"abc"`},
		{"quotes", `a"b\c`, `"a\"b\\c"`},
		{"controls", "\n\r\t\x00\x1b", `"\n\r\t\u0000\u001b"`},
		{"HTML stays", "<a&b>", `"<a&b>"`},
		{"other scripts stay", "né 世界 🙂\u2028", "\"né 世界 🙂\u2028\""},
		{"no UTF-8", "a\xffb\xc3", "\"a\uFFFDb\uFFFD\""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := AppendString(nil, tt.in)
			if string(got) != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			var back string
			if err := json.Unmarshal(got, &back); err != nil || back != strings.ToValidUTF8(tt.in, "\uFFFD") {
				t.Errorf("reads back as %q, %v", back, err)
			}
		})
	}
}

func FuzzAppendObject(f *testing.F) {
	for _, s := range []string{`{"a":1}`, `"{}"`, `null`, "\xff", `[`, `"\"{}\""`} {
		f.Add([]byte(s))
	}
	// The result is always one valid object.
	f.Fuzz(func(t *testing.T, args []byte) {
		out := AppendObject(nil, args)
		var o map[string]any
		if err := json.Unmarshal(out, &o); err != nil || o == nil {
			t.Fatalf("%q became %q: %v", args, out, err)
		}
	})
}

// Field case V2: lines of any length.
func TestV2LongLines(t *testing.T) {
	for _, n := range []int{1, 4096, 32<<10 - 1, 32 << 10, 32<<10 + 1, 70_000, 5 << 20} {
		in := NewLines(strings.NewReader(strings.Repeat("x", n) + "\n" + strings.Repeat("y", n)))
		first, cut, err := in.Next()
		if err != nil || cut || len(first) != n || first[0] != 'x' {
			t.Fatalf("%d: first line %d bytes, %t, %v", n, len(first), cut, err)
		}
		second, cut, err := in.Next()
		if err != nil || !cut || len(second) != n || second[0] != 'y' {
			t.Fatalf("%d: second line %d bytes, %t, %v", n, len(second), cut, err)
		}
		if _, _, err := in.Next(); err != io.EOF {
			t.Fatalf("%d: %v", n, err)
		}
	}
}

// endless is a line that never ends.
type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

func TestEndlessLineIsAnError(t *testing.T) {
	in := NewLines(endless{})
	if in.limit != 64<<20 {
		t.Errorf("limit %d", in.limit)
	}
	in.limit = 1 << 20
	if _, _, err := in.Next(); err != ErrTooLong {
		t.Errorf("got %v", err)
	}
}
