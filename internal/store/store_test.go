package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"zcoder/internal/event"
)

const id = "1764509281_48213"

func newStore(t *testing.T) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "sessions"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func opened(id string) event.Event {
	return event.Event{Seq: 1, Kind: event.Opened, Session: &event.Session{ID: id, Workspace: "/w", Profile: "coding"}}
}

func user(seq int64, text string) event.Event {
	return event.Event{Seq: seq, Kind: event.User, Text: text}
}

// write makes a session file with exactly these bytes.
func write(t *testing.T, s *Store, id, content string) string {
	t.Helper()
	path := filepath.Join(s.dir, id+".jsonl")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func texts(l Loaded) []string {
	var out []string
	for _, e := range l.Events {
		if e.Kind == event.User {
			out = append(out, e.Text)
		}
	}
	return out
}

func appendAll(t *testing.T, l *Log, events ...event.Event) {
	t.Helper()
	for _, e := range events {
		if err := l.Append(e); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDamagedLogsLoad(t *testing.T) {
	good := `{"seq":2,"event":"user","text":"one"}` + "\n"
	for _, tt := range []struct {
		name, content string
		want          []string
		bad           int
	}{
		{"torn last line", good + `{"seq":3,"event":"user","te`, []string{"one"}, 1},
		{"NUL padding", good + strings.Repeat("\x00", 300) + "\n" + good, []string{"one", "one"}, 1},
		{"raw newline in a string", good + "{\"seq\":3,\"event\":\"user\",\"text\":\"a\nb\"}\n" + good, []string{"one", "one"}, 2},
		{"a record without its part", good + `{"seq":3,"event":"reply"}` + "\n", []string{"one"}, 1},
		{"not an object", good + "[]\n" + good, []string{"one", "one"}, 1},
		{"CRLF", strings.ReplaceAll(good, "\n", "\r\n"), []string{"one"}, 0},
		{"a line over the bound", `{"seq":2,"event":"user","text":"` + strings.Repeat("x", maxLine) + "\"}\n" + good, []string{"one"}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStore(t)
			write(t, s, id, tt.content)
			got, err := s.Load(id)
			if err != nil || fmt.Sprint(texts(got)) != fmt.Sprint(tt.want) || got.Bad != tt.bad {
				t.Errorf("Load = %q, %d bad, %v; want %q, %d bad", texts(got), got.Bad, err, tt.want, tt.bad)
			}
		})
	}
}

func TestResumeAfterATornLineKeepsTheNextRecord(t *testing.T) {
	s := newStore(t)
	write(t, s, id, `{"seq":2,"event":"user","text":"one"}`+"\n"+`{"role":"assi`)
	l, _, err := s.Resume(id)
	if err != nil {
		t.Fatal(err)
	}
	appendAll(t, l, user(3, "two"))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := s.Load(id)
	if err != nil || fmt.Sprint(texts(got)) != "[one two]" {
		t.Errorf("Load = %q, %v; want both records", texts(got), err)
	}
}

func TestALiveSessionIsLocked(t *testing.T) {
	s := newStore(t)
	l, err := s.Create(id)
	if err != nil {
		t.Fatal(err)
	}
	appendAll(t, l, opened(id))
	if _, _, err := s.Resume(id); !errors.Is(err, ErrInUse) {
		t.Errorf("Resume of a live session = %v; want ErrInUse", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	again, _, err := s.Resume(id)
	if err != nil {
		t.Fatalf("Resume after Close: %v", err)
	}
	again.Close()
}

func TestFilesArePrivate(t *testing.T) {
	s := newStore(t)
	l, err := s.Create(id)
	if err != nil {
		t.Fatal(err)
	}
	appendAll(t, l, opened(id))
	l.Close()
	path := filepath.Join(s.dir, id+".jsonl")
	for path, want := range map[string]os.FileMode{s.dir: 0o700, path: 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("mode of %s = %v, %v; want %o", path, info.Mode().Perm(), err, want)
		}
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	l, _, err = s.Resume(id)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode after Resume = %o; want 600", info.Mode().Perm())
	}
}

func TestHostileNamesAndFiles(t *testing.T) {
	s := newStore(t)
	for _, bad := range []string{"../../x", "", "1_1/../../x", "a_b", "1_1\x00", "01_1", strings.Repeat("1", 400) + "_1"} {
		if _, err := s.Load(bad); !errors.Is(err, ErrUnknown) {
			t.Errorf("Load(%q) = %v; want ErrUnknown", bad, err)
		}
	}
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(s.dir, id+".jsonl")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Resume(id); err == nil {
		t.Error("Resume followed a link")
	}
	if err := unix.Mkfifo(filepath.Join(s.dir, "1764509281_1.jsonl"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load("1764509281_1"); err == nil {
		t.Error("Load read a FIFO")
	}
	if list, err := s.List("", ""); err != nil || len(list) != 0 {
		t.Errorf("List = %v, %v; want none", list, err)
	}
}

func TestList(t *testing.T) {
	s := newStore(t)
	for i, title := range []string{"first request\nmore", strings.Repeat("long ", 20)} {
		id := fmt.Sprintf("176450928%d_1", i)
		l, err := s.Create(id)
		if err != nil {
			t.Fatal(err)
		}
		appendAll(t, l, opened(id), user(2, title))
		l.Close()
		when := time.Unix(1764509281+int64(i), 0)
		if err := os.Chtimes(filepath.Join(s.dir, id+".jsonl"), when, when); err != nil {
			t.Fatal(err)
		}
	}
	empty, err := s.Create("1764509289_1")
	if err != nil {
		t.Fatal(err)
	}
	empty.Close()
	list, err := s.List("/w", "coding")
	if err != nil || len(list) != 2 {
		t.Fatalf("List = %v, %v; want two", list, err)
	}
	got := []string{list[0].Title, list[1].Title}
	want := []string{"long long long long long long long long l…", "first request"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("titles = %q; want %q", got, want)
	}
	if list, _ := s.List("/elsewhere", ""); len(list) != 0 {
		t.Errorf("List of another workspace = %v", list)
	}
	if list, _ := s.List("/w", "sysadmin"); len(list) != 0 {
		t.Errorf("List of another profile = %v", list)
	}
}

func TestALogThatCannotBeWrittenKeepsItsRecords(t *testing.T) {
	s := newStore(t)
	l, err := s.Create(id)
	if err != nil {
		t.Fatal(err)
	}
	appendAll(t, l, opened(id))
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("no /dev/full: %v", err)
	}
	disk := l.file
	l.file = full
	for i := range 3 {
		if err := l.Append(user(int64(2+i), fmt.Sprint("kept ", i))); err == nil {
			t.Fatal("Append to a full disk gave no error")
		}
	}
	if !l.Behind() {
		t.Fatal("Behind = false with three records unwritten")
	}
	full.Close()
	l.file = disk
	if err := l.Sync(); err != nil || l.Behind() {
		t.Fatalf("Sync = %v, behind %v", err, l.Behind())
	}
	l.Close()
	if got, err := s.Load(id); err != nil || fmt.Sprint(texts(got)) != "[kept 0 kept 1 kept 2]" {
		t.Errorf("Load = %q, %v; want all three", texts(got), err)
	}
}

// BenchmarkAppend appends, without a sync, to a log of a thousand events and to one of
// a hundred thousand.
func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprintf("%dk", n), func(b *testing.B) {
			s, err := Open(b.TempDir())
			if err != nil {
				b.Fatal(err)
			}
			withEvents(b, s, id, n*1000)
			l, _, err := s.Resume(id)
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			e := user(1, strings.Repeat("a line of text ", 20))
			for b.Loop() {
				if err := l.Append(e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// withEvents makes a session of n events of the usual size.
func withEvents(b *testing.B, s *Store, id string, n int) {
	l, err := s.Create(id)
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	for i := range n {
		e := user(int64(i+1), strings.Repeat("a line of text ", 7))
		if i == 0 {
			e = opened(id)
		}
		if err := l.Append(e); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	for _, n := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("%dk", n), func(b *testing.B) {
			s, err := Open(b.TempDir())
			if err != nil {
				b.Fatal(err)
			}
			withEvents(b, s, id, n*1000)
			for b.Loop() {
				if got, err := s.Load(id); err != nil || len(got.Events) != n*1000 {
					b.Fatal(len(got.Events), err)
				}
			}
		})
	}
}

func BenchmarkListSessions(b *testing.B) {
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, err := Open(b.TempDir())
			if err != nil {
				b.Fatal(err)
			}
			for i := range n {
				withEvents(b, s, fmt.Sprintf("1764509281_%d", i+1), 20)
			}
			for b.Loop() {
				if list, err := s.List("/w", "coding"); err != nil || len(list) != n {
					b.Fatal(len(list), err)
				}
			}
		})
	}
}
