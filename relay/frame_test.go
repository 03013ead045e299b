package relay

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"
)

func TestReadFrame(t *testing.T) {
	const max = 64
	for _, tt := range []struct{ name, in, want string }{
		{"whole", "ZCODER-AGENT/1 3\n{x}", "{x}"},
		{"more behind it", "ZCODER-AGENT/1 3\n{x}more", "{x}"},
		{"largest", "ZCODER-AGENT/1 64\n" + strings.Repeat("x", 64), strings.Repeat("x", 64)},
		{"too large", "ZCODER-AGENT/1 65\n" + strings.Repeat("x", 65), ""},
		{"4 GB", "ZCODER-AGENT/1 4294967296\nx", ""},
		{"beyond every integer", "ZCODER-AGENT/1 99999999999999999999\nx", ""},
		{"empty", "ZCODER-AGENT/1 0\n", ""},
		{"leading zero", "ZCODER-AGENT/1 03\n{x}", ""},
		{"negative", "ZCODER-AGENT/1 -3\n{x}", ""},
		{"sign", "ZCODER-AGENT/1 +3\n{x}", ""},
		{"hexadecimal", "ZCODER-AGENT/1 0x3\n{x}", ""},
		{"no count", "ZCODER-AGENT/1 \n{x}", ""},
		{"blanks", "ZCODER-AGENT/1  3\n{x}", ""},
		{"carriage return", "ZCODER-AGENT/1 3\r\n{x}", ""},
		{"future version", "ZCODER-AGENT/2 3\n{x}", ""},
		{"lower case", "zcoder-agent/1 3\n{x}", ""},
		{"short", "ZCODER-AGENT/1 4\n{x}", ""},
		{"half a header", "ZCODER-AG", ""},
		{"another protocol", "GET / HTTP/1.1\r\n\r\n", ""},
		{"nothing", "", ""},
		{"endless digits", "ZCODER-AGENT/1 " + strings.Repeat("1", 1<<16), ""},
	} {
		for _, slow := range []bool{false, true} {
			var r io.Reader = strings.NewReader(tt.in)
			if slow {
				r = iotest.OneByteReader(r)
			}
			got, err := readFrame(r, max)
			if string(got) != tt.want || (err == nil) != (tt.want != "") || err != nil && !errors.Is(err, errFrame) {
				t.Errorf("%s (slow %v): %q, %v", tt.name, slow, got, err)
			}
		}
	}
}

// TestHeaderMakesNoMemory reads a header that promises much and brings little.
func TestHeaderMakesNoMemory(t *testing.T) {
	const promised = 1 << 30
	var before, after runtime.MemStats
	const rounds = 100
	runtime.ReadMemStats(&before)
	for range rounds {
		if _, err := readFrame(strings.NewReader("ZCODER-AGENT/1 1073741824\nx"), promised); err == nil {
			t.Fatal("a cut frame was read")
		}
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / rounds; each > 16<<10 {
		t.Errorf("%d bytes for a frame that brought one", each)
	}
}

// valid is a whole request to an instance.
func valid(target string) string {
	return fmt.Sprintf(`{"protocol":1,"type":"enqueue","message_id":"7-8-1","target_instance_id":%q,"sender_instance_id":"7-8","sender_pid":7,"sender_project":"api","sender_workspace":"/w","body":"hello","created_at":1700000000}`, target)
}

// Y03: every request that is not exactly right has one answer.
func TestY03Requests(t *testing.T) {
	const self = "5-6"
	good := valid(self)
	ping := `{"protocol":1,"type":"ping","message_id":"7-8-1","target_instance_id":"5-6"}`
	for _, tt := range []struct {
		name, text string
		id         string
		want       status
	}{
		{"enqueue", good, "7-8-1", ""},
		{"ping", ping, "7-8-1", statusPong},
		{"unknown fields are left alone", strings.Replace(good, "{", `{"hops":3,`, 1), "7-8-1", ""},
		{"time with a fraction", strings.Replace(good, "1700000000", "1700000000.25", 1), "7-8-1", ""},
		{"no JSON", "x", "", statusInvalid},
		{"a list", "[]", "", statusInvalid},
		{"two objects", ping + ping, "", statusInvalid},
		{"nested", strings.Replace(good, `"hello"`, `{"a":1}`, 1), "", statusInvalid},
		{"invalid UTF-8", strings.Replace(good, "hello", "he\xffllo", 1), "", statusInvalid},
		{"duplicate body", strings.Replace(good, `"body":"hello"`, `"body":"hello","body":"rm"`, 1), "", statusInvalid},
		{"duplicate target in another case", strings.Replace(good, `{`, `{"Target_instance_id":"5-6",`, 1), "", statusInvalid},
		{"no id", strings.Replace(ping, `"message_id":"7-8-1",`, ``, 1), "", statusInvalid},
		{"id with a path", strings.Replace(ping, `7-8-1`, `../x`, 1), "", statusInvalid},
		{"long id", strings.Replace(ping, `7-8-1`, strings.Repeat("1", 101), 1), "", statusInvalid},
		{"longest id", strings.Replace(ping, `7-8-1`, strings.Repeat("1", 100), 1), strings.Repeat("1", 100), statusPong},
		{"no protocol", strings.Replace(ping, `"protocol":1,`, ``, 1), "7-8-1", statusInvalid},
		{"future protocol", strings.Replace(ping, `"protocol":1`, `"protocol":2`, 1), "7-8-1", statusUnsupported},
		{"no target", strings.Replace(ping, `,"target_instance_id":"5-6"`, ``, 1), "7-8-1", statusInvalid},
		{"wrong target", strings.Replace(ping, `5-6`, `5-7`, 1), "7-8-1", statusWrongTarget},
		{"wrong target and unknown type", strings.Replace(strings.Replace(ping, `5-6`, `5-7`, 1), `"ping"`, `"dance"`, 1), "7-8-1", statusWrongTarget},
		{"unknown type", strings.Replace(ping, `"ping"`, `"dance"`, 1), "7-8-1", statusUnsupported},
		{"no type", strings.Replace(ping, `"type":"ping",`, ``, 1), "7-8-1", statusInvalid},
		{"empty body", strings.Replace(good, `"hello"`, `""`, 1), "7-8-1", statusInvalid},
		{"longest body", strings.Replace(good, "hello", strings.Repeat("ä", 16000), 1), "7-8-1", ""},
		{"long body", strings.Replace(good, "hello", strings.Repeat("ä", 16001), 1), "7-8-1", statusInvalid},
		{"long project", strings.Replace(good, `"api"`, `"`+strings.Repeat("a", 257)+`"`, 1), "7-8-1", statusInvalid},
		{"long workspace", strings.Replace(good, `"/w"`, `"/`+strings.Repeat("a", 4096)+`"`, 1), "7-8-1", statusInvalid},
		{"pid of another", strings.Replace(good, `"sender_pid":7`, `"sender_pid":9`, 1), "7-8-1", statusInvalid},
		{"pid as text", strings.Replace(good, `"sender_pid":7`, `"sender_pid":"7"`, 1), "7-8-1", statusInvalid},
		{"sender is no id", strings.Replace(good, `"sender_instance_id":"7-8"`, `"sender_instance_id":"7-x"`, 1), "7-8-1", statusInvalid},
		{"no time", strings.Replace(good, `,"created_at":1700000000`, ``, 1), "7-8-1", statusInvalid},
	} {
		e, id, got := read([]byte(tt.text), self, DefaultLimits())
		if got != tt.want || id != tt.id {
			t.Errorf("%s: %q for %q, want %q for %q", tt.name, got, id, tt.want, tt.id)
		}
		if tt.name == "enqueue" && (e.Body != "hello" || e.Sender != "7-8" || e.PID != 7 || e.Project != "api" || e.Workspace != "/w" || e.ID != "7-8-1") {
			t.Errorf("read %+v", e)
		}
	}
}

// FuzzFrame holds for every input: nothing panics; a frame that is read is the
// bytes that its header counts; what is taken as a message has every field in its
// bounds; and what cannot be read has no id to answer with.
func FuzzFrame(f *testing.F) {
	for _, seed := range []string{
		valid("5-6"), `{"protocol":1,"type":"ping","message_id":"7-8-1","target_instance_id":"5-6"}`,
		`{"protocol":1,"PROTOCOL":2}`, `{"a":{"b":[]}}`, `{"body":"\ud800"}`, "\xff", "{}", "[1", `{"protocol":1e0}`, `{"a":1}{}`, "",
	} {
		f.Add(appendFrame([]byte(seed)))
		f.Add([]byte(seed))
	}
	f.Add([]byte("ZCODER-AGENT/1 4294967296\nx"))
	f.Add([]byte("ZCODER-AGENT/1 00\n"))
	f.Add([]byte("ZCODER-AGENT/2 2\n{}"))
	limits := Limits{FrameBytes: 4096, MessageChars: 50}
	f.Fuzz(func(t *testing.T, in []byte) {
		body, err := readFrame(bytes.NewReader(in), limits.FrameBytes)
		if err != nil {
			if body != nil || !errors.Is(err, errFrame) {
				t.Fatalf("%q with %v", body, err)
			}
		} else if !bytes.HasPrefix(in, appendFrame(body)) || len(body) == 0 || len(body) > limits.FrameBytes {
			t.Fatalf("%q was read from %q", body, in)
		}
		for _, text := range [][]byte{body, in} {
			checkRead(t, text, limits)
			if p, err := parseManifest(text, "7-8"); err == nil && (p.ID != "7-8" || p.PID != 7 || p.check() != nil || !p.State.valid()) {
				t.Fatalf("manifest %+v", p)
			}
			if a, err := readAck(text); err == nil && (!a.Status.valid() || !a.State.valid() || a.Position < 0) {
				t.Fatalf("ack %+v", a)
			}
		}
	})
}

func checkRead(t *testing.T, text []byte, limits Limits) {
	e, id, verdict := read(text, "5-6", limits)
	if id != "" && !messageIDPattern.MatchString(id) {
		t.Fatalf("id %q", id)
	}
	if verdict != "" {
		if !verdict.valid() || verdict == statusAccepted || verdict == statusDuplicate {
			t.Fatalf("verdict %q", verdict)
		}
		return
	}
	self := Self{Project: e.Project, Workspace: "/", Model: ""}
	if n := len([]rune(e.Body)); n < 1 || n > limits.MessageChars || self.check() != nil || !ValidID(e.Sender) || pidOf(e.Sender) != e.PID || e.ID != id {
		t.Fatalf("accepted %+v", e)
	}
	if filepath.Base(e.fileName()) != e.fileName() || filepath.Base(e.key()) != e.key() || len(e.key()) > 200 {
		t.Fatalf("file names %q and %q", e.fileName(), e.key())
	}
}

// Y03 over the socket: garbage, silence and a crowd of slow peers do not keep a
// whole frame from being answered.
func TestY03GarbageAndSlowPeers(t *testing.T) {
	dir := shortDir(t)
	o := options(t, dir, "beta")
	o.Limits.IOTimeout = 300 * time.Millisecond
	a, b := open(t, options(t, dir, "alpha")), open(t, o)
	dial := func() net.Conn {
		conn, err := net.Dial("unix", b.socket())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	reply := func(conn net.Conn) string {
		if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		data, _ := io.ReadAll(conn) // its end may be a reset
		return string(data)
	}
	const invalid = `{"protocol":1,"type":"ack","message_id":"","status":"invalid","queue_position":0,"state":"ready"}`
	want := fmt.Sprintf("ZCODER-AGENT/1 %d\n%s", len(invalid), invalid)
	for _, tt := range []struct{ name, send string }{
		{"another protocol", "GET / HTTP/1.0\r\n\r\n"},
		{"4 GB", "ZCODER-AGENT/1 4294967296\n"},
		{"half a frame, then silence", "ZCODER-AGENT/1 100\n{"},
		{"silence", ""},
		{"no UTF-8", "ZCODER-AGENT/1 1\n\xff"},
	} {
		conn := dial()
		if _, err := io.WriteString(conn, tt.send); err != nil {
			t.Fatal(err)
		}
		got := reply(conn)
		// After the deadline nothing can be written: closing is the answer.
		if late := strings.Contains(tt.name, "silence"); late && got != "" || !late && got != want {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
	for range 3 * maxConnections {
		if _, err := io.WriteString(dial(), "ZCODER-AGENT/1 "); err != nil {
			t.Fatal(err)
		}
	}
	start := time.Now()
	if _, err := a.Send(t.Context(), b.peer(), "through the crowd"); err != nil {
		t.Errorf("Send = %v", err)
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("it took %v", took)
	}
	if e := b.claim(t); e.Body != "through the crowd" {
		t.Errorf("claimed %+v", e)
	}
}

// Y03: a flood of tiny frames is answered, each, and leaves nothing behind: a million
// with RELAY_SOAK.
func TestY03TinyFrames(t *testing.T) {
	count := 4000
	if soaking() {
		count = 1_000_000
	}
	dir := shortDir(t)
	b := open(t, options(t, dir, "beta"))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range count / 8 {
				conn, err := net.Dial("unix", b.socket())
				if err != nil {
					t.Error(err)
					return
				}
				_, werr := io.WriteString(conn, "ZCODER-AGENT/1 2\n{}")
				data, rerr := io.ReadAll(conn)
				conn.Close()
				if werr != nil || rerr != nil || !strings.Contains(string(data), `"status":"invalid"`) {
					t.Errorf("%q (%v, %v)", data, werr, rerr)
					return
				}
			}
		})
	}
	wg.Wait()
	b.server.mu.Lock()
	left := b.server.open.Len()
	b.server.mu.Unlock()
	if left != 0 || b.Depth() != 0 {
		t.Errorf("%d connections and %d messages are left", left, b.Depth())
	}
}

// Y05: a process of another user is not answered, whoever it is; root is no
// exception unless we are root.
func TestY05OtherUsers(t *testing.T) {
	dir := shortDir(t)
	path := filepath.Join(dir, "s")
	s := newServer(DefaultLimits(), os.Geteuid()+1, func([]byte, error) ack { // seen from there, we are another user
		t.Error("a request of another user was judged")
		return ack{}
	})
	if err := s.listen(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	defer s.close()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = conn.Write(appendFrame([]byte(valid("5-6")))) // it may be closed already
	if data, _ := io.ReadAll(conn); len(data) != 0 {
		t.Errorf("answered %q", data)
	}
	a, b := open(t, options(t, dir, "alpha")), open(t, options(t, dir, "beta"))
	a.Node.o.UID++
	if _, err := a.dial(t.Context(), b.ID()); err == nil || !strings.Contains(err.Error(), "another user") {
		t.Errorf("dial = %v", err)
	}
}
