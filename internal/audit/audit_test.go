package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"zcoder/internal/approval"
)

var day = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// clock ticks a second with each look.
func clock() func() time.Time {
	at := day
	return func() time.Time { at = at.Add(time.Second); return at }
}

func open(t *testing.T, dir string) *Log {
	t.Helper()
	l, err := Open(dir, Options{Now: clock(), Instance: "i1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func put(t *testing.T, l *Log, kinds ...string) {
	t.Helper()
	for _, k := range kinds {
		if err := l.Record(approval.Record{Kind: k, Sync: true}); err != nil {
			t.Fatal(err)
		}
	}
}

// filled makes a log of n synced records that nobody has open.
func filled(t *testing.T, n int) (dir, path string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "audit")
	l := open(t, dir)
	for i := range n {
		put(t, l, fmt.Sprintf("kind%d", i+1))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, filepath.Join(dir, logName)
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func verified(t *testing.T, dir string) Report {
	t.Helper()
	r, err := Verify(dir, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func request() *approval.Request {
	return &approval.Request{
		CallID: "c1", Tool: "run_command", Effect: approval.Exec, Origin: approval.OriginUser, Turn: "t1",
		Summary: "run_command deploy --token s3cret", Text: "deploy --token s3cret\nrm x", Shell: []string{"/bin/zsh", "-f", "-c"},
		Dir: "/w", Args: `{"command":"deploy --token s3cret\nrm x"}`, Paths: []approval.PathUse{{Path: "/w/x"}},
	}
}

func TestStoredForm(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	l, err := Open(dir, Options{Now: clock(), Instance: "i1", Mask: func(s string) string { return strings.ReplaceAll(s, "s3cret", "•••") }})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	q := request()
	for _, r := range []approval.Record{
		{Kind: "verdict", Request: q, Verdict: &approval.Verdict{Decision: approval.Ask, Rule: "profile", Reason: "s3cret", Firm: true}, Sync: true},
		{Kind: "answer", Request: q, Answer: &approval.Answer{Choice: approval.Once, Reason: "s3cret", By: "repl"}, Sync: true},
		{Kind: "start", Request: q, Sync: true},
		{Kind: "end", Request: q, Outcome: "failed", Detail: "1.5s"},
		{Kind: "session", Detail: "s3cret\nmore"},
	} {
		if err := l.Record(r); err != nil {
			t.Fatal(err)
		}
	}
	digest := q.Digest().String()
	same := `"turn":"t1","call":"c1","tool":"run_command","effect":"exec","origin":"user","digest":"` + digest + `","size":26,"paths":1`
	want := []string{
		`{"n":1,"t":"2026-07-01T12:00:01.000000Z","by":"i1","kind":"verdict",` + same + `,"summary":"run_command deploy --token •••","verdict":"ask","rule":"profile","firm":true}`,
		`{"n":2,"t":"2026-07-01T12:00:02.000000Z","by":"i1","kind":"answer",` + same + `,"choice":"once","from":"repl"}`,
		`{"n":3,"t":"2026-07-01T12:00:03.000000Z","by":"i1","kind":"start",` + same + `,"summary":"run_command deploy --token •••"}`,
		`{"n":4,"t":"2026-07-01T12:00:04.000000Z","by":"i1","kind":"end",` + same + `,"outcome":"failed","detail":"1.5s"}`,
		`{"n":5,"t":"2026-07-01T12:00:05.000000Z","by":"i1","kind":"session","detail":"•••"}`,
	}
	log := read(t, filepath.Join(dir, logName))
	if bytes.Contains(log, []byte("s3cret")) {
		t.Error("a secret is in the log")
	}
	// The form is checked here by hand, with nothing of the package.
	prev := strings.Repeat("0", 64)
	lines := strings.Split(strings.TrimSuffix(string(log), "\n"), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d lines", len(lines))
	}
	for i, line := range lines {
		var outer struct {
			Hash string          `json:"hash"`
			Rec  json.RawMessage `json:"rec"`
		}
		if err := json.Unmarshal([]byte(line), &outer); err != nil {
			t.Fatal(err)
		}
		if string(outer.Rec) != want[i] {
			t.Errorf("line %d:\n got %s\nwant %s", i+1, outer.Rec, want[i])
		}
		sum := sha256.Sum256([]byte(prev + string(outer.Rec)))
		if prev = hex.EncodeToString(sum[:]); outer.Hash != prev {
			t.Errorf("line %d: hash %s, want %s", i+1, outer.Hash, prev)
		}
	}
	var h head
	if err := json.Unmarshal(read(t, filepath.Join(dir, headName)), &h); err != nil || h.Count != 3 {
		t.Errorf("head %+v, %v: want the last synced record, 3", h, err)
	}
}

func TestNoSummaryWithoutMask(t *testing.T) {
	dir, _ := filled(t, 0)
	l := open(t, dir)
	if err := l.Record(approval.Record{Kind: "start", Request: request()}); err != nil {
		t.Fatal(err)
	}
	if log := read(t, filepath.Join(dir, logName)); bytes.Contains(log, []byte("deploy")) {
		t.Errorf("words of the command are in %s", log)
	}
}

func TestModes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "audit")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, logName), nil)
	if err := os.Chmod(filepath.Join(dir, logName), 0o644); err != nil {
		t.Fatal(err)
	}
	put(t, open(t, dir), "one")
	for name, want := range map[string]os.FileMode{".": 0o700, logName: 0o600, headName: 0o600, lockName: 0o600} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %v", name, info.Mode().Perm(), err, want)
		}
	}
}

func TestLongAndHostileFields(t *testing.T) {
	dir, _ := filled(t, 0)
	l, err := Open(dir, Options{Now: clock(), Instance: strings.Repeat("i", 9999), Mask: func(s string) string { return s }})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	q := request()
	q.Turn, q.CallID, q.Tool = strings.Repeat("ä", 5000), "c\n\x00\x1b", `x","kind":"broken","y":"`
	q.Summary = strings.Repeat("long ", 100000)
	for range 3 {
		if err := l.Record(approval.Record{Kind: strings.Repeat("k", 9999), Request: q, Detail: "\xff\xfe" + strings.Repeat("d", 9999), Sync: true}); err != nil {
			t.Fatal(err)
		}
	}
	if r := verified(t, dir); !r.Whole() || r.Records != 3 {
		t.Errorf("got %+v", r)
	}
	for _, line := range bytes.Split(read(t, filepath.Join(dir, logName)), []byte("\n")) {
		if len(line) > 4000 {
			t.Errorf("a line of %d bytes", len(line))
		}
	}
	for _, kind := range []string{"broken", "recovered"} {
		if err := l.Record(approval.Record{Kind: kind}); err == nil {
			t.Errorf("a record of kind %q was taken", kind)
		}
	}
}

func TestReopen(t *testing.T) {
	dir, _ := filled(t, 0)
	for i := range 5 {
		l := open(t, dir)
		put(t, l, "one", "two")
		if err := l.Record(approval.Record{Kind: "unsynced"}); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil || l.Notice() != "" {
			t.Fatal(err, l.Notice())
		}
		if r := verified(t, dir); !r.Whole() || r.Records != int64(3*i+3) || r.Last != r.Records {
			t.Fatalf("got %+v", r)
		}
	}
	if err := open(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
	l := open(t, dir)
	_ = l.Close()
	if err := l.Record(approval.Record{Kind: "late"}); err == nil {
		t.Error("a closed log took a record")
	}
}

// TestTamper changes a log of five records in ways that must be found.
func TestTamper(t *testing.T) {
	tests := []struct {
		name   string
		change func(log []byte) []byte
		record int64
		reason string
		whole  bool // after the log was opened again but for the record of the break
	}{
		{"a byte of a payload", func(b []byte) []byte { return bytes.Replace(b, []byte("kind3"), []byte("kinD3"), 1) }, 3, "hash does not match", false},
		{"a byte of a hash", func(b []byte) []byte { i := lineStart(b, 3) + len(frameHash); b[i] = other(b[i]); return b }, 3, "hash does not match", false},
		{"a byte of the frame", func(b []byte) []byte { b[lineStart(b, 3)+1] = 'x'; return b }, 3, "a line is no record", false},
		{"the number", func(b []byte) []byte { return bytes.Replace(b, []byte(`{"n":3`), []byte(`{"n":7`), 1) }, 3, "record 7 follows record 2", false},
		{"a line end", func(b []byte) []byte { b[lineStart(b, 4)-1] = ' '; return b }, 3, "hash does not match", false},
		{"one byte appended", func(b []byte) []byte { return append(b, 'x') }, 6, "no record", false},
		{"a byte before the first line", func(b []byte) []byte { return append([]byte{' '}, b...) }, 1, "a line is no record", false},
		{"an empty line", func(b []byte) []byte { return append(b, '\n') }, 6, "a line is no record", false},
		{"an empty line within", func(b []byte) []byte { return insert(b, lineStart(b, 3), "\n") }, 3, "a line is no record", false},
		{"a line removed", func(b []byte) []byte { return append(b[:lineStart(b, 3):lineStart(b, 3)], b[lineStart(b, 4):]...) }, 3, "record 4 follows record 2", false},
		{"a line doubled", func(b []byte) []byte {
			return insert(b, lineStart(b, 4), string(b[lineStart(b, 3):lineStart(b, 4)]))
		}, 4, "hash does not match", false},
		{"two lines exchanged", func(b []byte) []byte {
			three, four := string(b[lineStart(b, 3):lineStart(b, 4)]), string(b[lineStart(b, 4):lineStart(b, 5)])
			return []byte(string(b[:lineStart(b, 3)]) + four + three + string(b[lineStart(b, 5):]))
		}, 3, "record 4 follows record 2", false},
		{"the last record cut off", func(b []byte) []byte { return b[:lineStart(b, 5)] }, 5, "the log is cut: it ends with record 4, and record 5 was written", false},
		{"cut within the last record", func(b []byte) []byte { return b[:len(b)-20] }, 5, "the log is cut", false},
		{"the last line end cut off", func(b []byte) []byte { return b[:len(b)-1] }, 5, "the log is cut", true},
		{"all cut off", func([]byte) []byte { return nil }, 1, "the log is cut: it ends with record 0", false},
		{"another log in its place", func([]byte) []byte { return forged(9) }, 5, "not the record that the head names", true},
		{"a NUL appended", func(b []byte) []byte { return append(b, 0) }, 6, "no record", false},
		{"a very long line", func(b []byte) []byte { return append(b, strings.Repeat("x", 300000)+"\n"...) }, 6, "a line is no record", false},
		{"a very long end", func(b []byte) []byte { return append(b, strings.Repeat("x", 300000)...) }, 6, "no record", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir, path := filled(t, 5)
			changed := tt.change(read(t, path))
			write(t, path, changed)
			check := func(when string) {
				t.Helper()
				r := verified(t, dir)
				first := when == "before it is opened"
				if !first && tt.whole {
					// What was missing is there again, or hidden by what followed; that it
					// was not remains told.
					if r.Whole() || !strings.Contains(r.Breaks[0].Reason, fmt.Sprintf("a break was recorded here: at record %d: ", tt.record)) {
						t.Errorf("%s: got %+v", when, r)
					}
					return
				}
				if r.Whole() || r.Breaks[0].Record != tt.record || first && !strings.Contains(r.Breaks[0].Reason, tt.reason) {
					t.Fatalf("%s: got %+v, want a break at %d: %s", when, r, tt.record, tt.reason)
				}
				want := fmt.Sprintf("chain broken at record %d: ", tt.record)
				if !strings.Contains(r.String(), want) || strings.Contains(r.String(), "is whole") {
					t.Errorf("%s: report %q", when, r)
				}
			}
			check("before it is opened")
			if !bytes.Equal(read(t, path), changed) {
				t.Fatal("Verify changed the log")
			}
			for range 2 {
				l := open(t, dir)
				if !strings.Contains(l.Notice(), fmt.Sprintf("at record %d: ", tt.record)) || !strings.Contains(l.Notice(), "broken") {
					t.Errorf("notice %q", l.Notice())
				}
				put(t, l, "after")
				_ = l.Close()
				check("after it was opened")
			}
			if now := read(t, path); !bytes.HasPrefix(now, changed) || bytes.Count(now, []byte(`"kind":"broken"`)) != 1 || bytes.Count(now, []byte(`"kind":"after"`)) != 2 {
				t.Errorf("the log is now\n%s", now)
			}
			if log := read(t, path); bytes.Count(log, []byte(`{"n":1,`)) > max(1, bytes.Count(changed, []byte(`{"n":1,`))) {
				t.Error("the chain was begun anew")
			}
		})
	}
}

func lineStart(b []byte, n int) int {
	at := 0
	for range n - 1 {
		at += bytes.IndexByte(b[at:], '\n') + 1
	}
	return at
}

func other(c byte) byte {
	if c == '0' {
		return '1'
	}
	return '0'
}

func insert(b []byte, at int, text string) []byte {
	return []byte(string(b[:at]) + text + string(b[at:]))
}

// forged is a log whose chain is right in itself.
func forged(n int) []byte {
	var b []byte
	last := genesis()
	for i := range n {
		line, next, err := Entry{N: int64(i + 1), Time: day.Format(timeForm), Kind: "forged"}.line(last)
		if err != nil {
			panic(err)
		}
		b, last = append(b, line...), next
	}
	return b
}

func TestHeadTampered(t *testing.T) {
	tests := []struct {
		name   string
		change func(h []byte) []byte
		whole  bool
	}{
		{"removed", nil, false},
		{"empty", func([]byte) []byte { return nil }, false},
		{"zeros", func(h []byte) []byte { return make([]byte, len(h)) }, false},
		{"of an empty log", func([]byte) []byte { return first() }, true}, // as after a crash before the first sync
		{"a changed count", func(h []byte) []byte { return bytes.Replace(h, []byte(`"count":5`), []byte(`"count":4`), 1) }, false},
		{"a changed hash", func(h []byte) []byte { h[30] = other(h[30]); return h }, false},
		{"no JSON", func(h []byte) []byte { h[0] = 'x'; return h }, false},
		{"cut", func(h []byte) []byte { return h[:50] }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir, _ := filled(t, 5)
			path := filepath.Join(dir, headName)
			if tt.change == nil {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			} else {
				write(t, path, tt.change(read(t, path)))
			}
			if r := verified(t, dir); r.Whole() != tt.whole {
				t.Errorf("got %+v", r)
			}
			l := open(t, dir)
			put(t, l, "after")
			if (l.Notice() == "") != tt.whole {
				t.Errorf("notice %q", l.Notice())
			}
			if r := verified(t, dir); r.Whole() != tt.whole {
				t.Errorf("afterwards %+v", r)
			}
		})
	}
}

// first is the head of a log that holds nothing yet.
func first() []byte {
	text := `{"count":0,"hash":"` + strings.Repeat("0", 64) + `","size":0}`
	return []byte(text + strings.Repeat(" ", 159-len(text)) + "\n")
}

// TestLostAfterCleanExit removes what was written last, though nothing synced it.
func TestLostAfterCleanExit(t *testing.T) {
	dir, path := filled(t, 2)
	l := open(t, dir)
	if err := l.Record(approval.Record{Kind: "end"}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	log := read(t, path)
	write(t, path, log[:lineStart(log, 3)])
	if r := verified(t, dir); r.Whole() || r.Breaks[0].Record != 3 {
		t.Errorf("got %+v", r)
	}
	l = open(t, dir)
	if want := "at record 3: the log is cut: it ends with record 2, and record 3 was written"; !strings.Contains(l.Notice(), want) {
		t.Errorf("notice %q, want %q", l.Notice(), want)
	}
	if r := verified(t, dir); r.Whole() {
		t.Errorf("afterwards %+v", r)
	}
}

// TestCloseKeepsALaterHead closes two programs in both orders.
func TestCloseKeepsALaterHead(t *testing.T) {
	for _, order := range [][2]int{{0, 1}, {1, 0}} {
		dir, path := filled(t, 1)
		logs := [2]*Log{open(t, dir), open(t, dir)}
		for _, l := range logs {
			if err := l.Record(approval.Record{Kind: "end"}); err != nil {
				t.Fatal(err)
			}
		}
		for _, i := range order {
			if err := logs[i].Close(); err != nil {
				t.Fatal(err)
			}
		}
		log := read(t, path)
		if r := verified(t, dir); !r.Whole() || r.Records != 3 {
			t.Errorf("got %+v", r)
		}
		write(t, path, log[:lineStart(log, 3)])
		if r := verified(t, dir); r.Whole() {
			t.Errorf("order %v: a lost record was not found", order)
		}
	}
}

// TestCrashBeforeTheFirstSync leaves records that no head names.
func TestCrashBeforeTheFirstSync(t *testing.T) {
	dir, path := filled(t, 0)
	l := open(t, dir)
	if err := l.Record(approval.Record{Kind: "session"}); err != nil {
		t.Fatal(err)
	}
	crash(t, l)
	if r := verified(t, dir); !r.Whole() || r.Records != 1 {
		t.Errorf("got %+v", r)
	}
	log := read(t, path)
	write(t, path, log[:20])
	if r := verified(t, dir); !r.Whole() || r.Unfinished != 20 {
		t.Errorf("got %+v", r)
	}
}

// crash leaves a log as the death of its program does.
func crash(t *testing.T, l *Log) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.closeFiles(); err != nil {
		t.Fatal(err)
	}
}

// TestTornTail cuts an unsynced last record at every byte, as a crash does.
func TestTornTail(t *testing.T) {
	dir, path := filled(t, 3)
	l := open(t, dir)
	if err := l.Record(approval.Record{Kind: "lost", Detail: "x"}); err != nil {
		t.Fatal(err)
	}
	crash(t, l)
	whole, headText := read(t, path), read(t, filepath.Join(dir, headName))
	begin := lineStart(whole, 4)
	for cut := begin + 1; cut < len(whole); cut++ {
		write(t, path, whole[:cut])
		write(t, filepath.Join(dir, headName), headText)
		r := verified(t, dir)
		records := int64(3)
		if cut == len(whole)-1 {
			records = 4 // only its line end is missing
		}
		if !r.Whole() || r.Unfinished != int64(cut-begin) || r.Records != records || !strings.Contains(r.String(), "as after a crash") {
			t.Fatalf("cut at %d: %+v", cut-begin, r)
		}
		l := open(t, dir)
		if !strings.Contains(l.Notice(), fmt.Sprintf("an unfinished record of %d bytes", cut-begin)) {
			t.Fatalf("cut at %d: notice %q", cut-begin, l.Notice())
		}
		put(t, l, "after")
		_ = l.Close()
		if l := open(t, dir); l.Notice() != "" {
			t.Fatalf("cut at %d: second notice %q", cut-begin, l.Notice())
		}
		if r := verified(t, dir); !r.Whole() || r.Unfinished != 0 {
			t.Fatalf("cut at %d, then closed: %+v", cut-begin, r)
		}
		if now := read(t, path); bytes.Count(now, []byte(`"kind":"recovered"`)) != 1 || !bytes.HasPrefix(now, whole[:cut]) {
			t.Fatalf("cut at %d: log\n%s", cut-begin, now)
		}
	}
}

// TestClosedTailIsGuarded changes the piece that a recovered record tells of.
func TestClosedTailIsGuarded(t *testing.T) {
	dir, path := filled(t, 3)
	write(t, path, append(read(t, path), `{"hash":"0123`...))
	l := open(t, dir)
	put(t, l, "after")
	_ = l.Close()
	good := read(t, path)
	for name, b := range map[string][]byte{
		"changed": bytes.Replace(good, []byte(`{"hash":"0123`+"\n"), []byte(`{"hash":"0124`+"\n"), 1),
		"removed": bytes.Replace(good, []byte(`{"hash":"0123`+"\n"), nil, 1),
		"longer":  bytes.Replace(good, []byte(`{"hash":"0123`+"\n"), []byte(`{"hash":"01234`+"\n"), 1),
	} {
		write(t, path, b)
		if r := verified(t, dir); r.Whole() {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestOtherProgramAppends(t *testing.T) {
	dir, path := filled(t, 0)
	a, b := open(t, dir), open(t, dir)
	for range 20 {
		put(t, a, "a")
		put(t, b, "b", "b")
	}
	// A third one is killed in the middle of a write.
	write(t, path, append(read(t, path), `{"hash":"abc`...))
	put(t, a, "a")
	put(t, b, "b")
	if r := verified(t, dir); !r.Whole() || r.Records != 63 {
		t.Errorf("got %+v", r)
	}
	if !strings.Contains(a.Notice(), "unfinished record of 12 bytes") || b.Notice() != "" {
		t.Errorf("notices %q, %q", a.Notice(), b.Notice())
	}
}

func TestLogVanishesWhileOpen(t *testing.T) {
	for name, harm := range map[string]func(dir, path string) error{
		"removed":           func(_, path string) error { return os.Remove(path) },
		"emptied":           func(_, path string) error { return os.Truncate(path, 0) },
		"cut":               func(_, path string) error { return os.Truncate(path, 300) },
		"directory removed": func(dir, _ string) error { return os.RemoveAll(dir) },
		"replaced": func(_, path string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.WriteFile(path, forged(2), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, path := filled(t, 5)
			l := open(t, dir)
			put(t, l, "six")
			if err := harm(dir, path); err != nil {
				t.Fatal(err)
			}
			put(t, l, "seven")
			if !strings.Contains(l.Notice(), "broken") {
				t.Errorf("notice %q", l.Notice())
			}
			if r := verified(t, dir); r.Whole() || r.Last != 8 {
				t.Errorf("got %+v", r)
			}
			other := open(t, dir)
			put(t, other, "nine")
			if r := verified(t, dir); r.Last != 9 {
				t.Errorf("got %+v", r)
			}
		})
	}
}

func TestVerifySince(t *testing.T) {
	dir, path := filled(t, 10) // one a second
	tests := []struct {
		since       time.Time
		records     int64
		first, last int64
	}{
		{time.Time{}, 10, 1, 10},
		{day, 10, 1, 10},
		{day.Add(5 * time.Second), 6, 5, 10},
		{day.Add(5*time.Second + 1), 6, 5, 10}, // below the clock's unit
		{day.Add(10 * time.Second), 1, 10, 10},
		{day.Add(time.Hour), 0, 0, 0},
	}
	for _, tt := range tests {
		r, err := Verify(dir, tt.since)
		if err != nil || !r.Whole() || r.Records != tt.records || r.First != tt.first || r.Last != tt.last {
			t.Errorf("since %v: %+v, %v", tt.since, r, err)
		}
	}
	write(t, path, bytes.Replace(read(t, path), []byte("kind3"), []byte("kinD3"), 1))
	if r, err := Verify(dir, day.Add(5*time.Second)); err != nil || !r.Whole() {
		t.Errorf("an old break: %+v, %v", r, err)
	}
	if r, err := Verify(dir, day.Add(3*time.Second)); err != nil || r.Whole() {
		t.Errorf("a new break: %+v, %v", r, err)
	}
}

func TestVerifyUnreadable(t *testing.T) {
	if _, err := Verify(filepath.Join(t.TempDir(), "none"), time.Time{}); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("got %v", err)
	}
	empty := t.TempDir()
	if r, err := Verify(empty, time.Time{}); err != nil || !r.Whole() || r.Records != 0 {
		t.Errorf("an empty directory: %+v, %v", r, err)
	}
	if list, _ := os.ReadDir(empty); len(list) != 0 {
		t.Errorf("Verify made %v", list)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Run("link", func(t *testing.T) {
		dir := t.TempDir()
		target := filepath.Join(t.TempDir(), "target")
		write(t, target, nil)
		if err := os.Symlink(target, filepath.Join(dir, logName)); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, Options{Now: clock()}); err == nil {
			t.Error("a link was followed")
		}
	})
	t.Run("directory is a file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "audit")
		write(t, path, nil)
		if _, err := Open(path, Options{Now: clock()}); err == nil || !strings.Contains(err.Error(), "not a directory") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("log is a directory", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, logName), 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, Options{Now: clock()}); err == nil {
			t.Error("a directory was opened")
		}
	})
}

// TestLargeLogOpens checks that Open reads a bounded part, also when a break lies in
// it or before it.
func TestLargeLogOpens(t *testing.T) {
	dir, path := filled(t, 0)
	log := forged(5000)
	write(t, path, log)
	put(t, open(t, dir), "one")
	if r := verified(t, dir); !r.Whole() || r.Records != 5001 {
		t.Fatalf("got %+v", r)
	}
	good := read(t, path)
	for _, at := range []int{10, 3000, 4990} {
		b := bytes.Clone(good)
		i := lineStart(b, at) + recBegin + 20
		b[i] = other(b[i])
		write(t, path, b)
		l := open(t, dir)
		put(t, l, "after")
		_ = l.Close()
		if near := at > 4000; strings.Contains(l.Notice(), fmt.Sprintf("at record %d", at)) != near {
			t.Errorf("at %d: notice %q", at, l.Notice())
		}
		if r := verified(t, dir); r.Whole() || r.Breaks[0].Record != int64(at) {
			t.Errorf("at %d: %+v", at, r)
		}
		_ = os.Remove(filepath.Join(dir, headName))
	}
}

func TestTailAndGrep(t *testing.T) {
	dir, path := filled(t, 10)
	write(t, path, append(read(t, path), "garbage\n"...))
	list, err := Tail(dir, 3)
	if err != nil || len(list) != 2 || list[1].Kind != "kind10" { // the garbage counts as a line
		t.Errorf("got %v, %v", list, err)
	}
	list, err = Tail(dir, 100)
	if err != nil || len(list) != 10 || list[0].N != 1 || list[0].String() != "1  2026-07-01T12:00:01.000000Z  kind1" {
		t.Errorf("got %v, %v", list, err)
	}
	if list, err := Tail(dir, 0); err != nil || len(list) != 0 {
		t.Errorf("got %v, %v", list, err)
	}
	re := regexp.MustCompile(`kind(3|7|10)`)
	var got []int64
	for e, err := range Grep(dir, re.Match, day.Add(5*time.Second)) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.N)
	}
	if fmt.Sprint(got) != "[7 10]" {
		t.Errorf("got %v", got)
	}
	for _, err := range Grep(filepath.Join(dir, "none"), re.Match, time.Time{}) {
		if err == nil {
			t.Error("no error for a missing directory")
		}
	}
}

func TestTailOfALargeLog(t *testing.T) {
	dir, path := filled(t, 0)
	write(t, path, forged(3000))
	list, err := Tail(dir, 1500)
	if err != nil || len(list) != 1500 || list[0].N != 1501 || list[1499].N != 3000 {
		t.Errorf("%d records, %v", len(list), err)
	}
}
