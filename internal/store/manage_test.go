package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"zcoder/internal/chat"
	"zcoder/internal/event"
)

// long is a session that is longer than any buffer, with its title in the middle.
func long(t testing.TB, s *Store, id string, rounds int) {
	t.Helper()
	l, err := s.Create(id)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	seq := int64(1)
	put := func(e event.Event) {
		seq++
		e.Seq = seq
		if err := l.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Append(opened(id)); err != nil {
		t.Fatal(err)
	}
	put(event.Event{Kind: event.Note, Text: "an attachment " + strings.Repeat("x", 100_000)})
	for i := range rounds {
		put(event.Event{Kind: event.TurnStart, Turn: fmt.Sprint("t", i)})
		put(event.Event{Kind: event.User, Text: fmt.Sprintf("request %d\nsecond line", i)})
		put(event.Event{Kind: event.Content, Text: `a piece with "event":"turn_start" in it ` + strings.Repeat("y", 2000)})
		put(event.Event{Kind: event.Reply, Reply: &event.ModelReply{Message: chat.Message{Role: chat.Assistant, Content: fmt.Sprintf("Answer %d has a Needle.", i)}}})
		put(event.Event{Kind: event.TurnEnd, End: &event.End{Reason: event.Complete}})
		if i == rounds/2 {
			put(event.Event{Kind: event.Titled, Text: "given in the middle"})
		}
	}
}

func TestListOfALongSession(t *testing.T) {
	s := newStore(t)
	long(t, s, id, 41)
	list, err := s.List("/w", "coding")
	if err != nil || len(list) != 1 {
		t.Fatalf("List = %v, %v", list, err)
	}
	if list[0].Title != "given in the middle" || list[0].Turns != 41 || list[0].Workspace != "/w" {
		t.Errorf("info %+v", list[0])
	}
	short := "1764509289_1"
	long(t, s, short, 1)
	if err := os.Chtimes(filepath.Join(s.dir, short+".jsonl"), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	list, _ = s.List("", "")
	if len(list) != 2 || list[1].ID != short || list[1].Turns != 1 {
		t.Errorf("list %+v", list)
	}
}

func TestRename(t *testing.T) {
	s := newStore(t)
	long(t, s, id, 2)
	if err := s.Rename(id, "a better \x1b]52;c;x\x07name", time.Unix(9, 0)); err != nil {
		t.Fatal(err)
	}
	list, _ := s.List("", "")
	if len(list) != 1 || list[0].Title != "a better \x1b]52;c;x\x07name" {
		t.Errorf("list %+v", list)
	}
	loaded, err := s.Load(id)
	if err != nil || loaded.Bad != 0 {
		t.Fatalf("%d bad lines, %v", loaded.Bad, err)
	}
	last := loaded.Events[len(loaded.Events)-1]
	if before := loaded.Events[len(loaded.Events)-2]; last.Kind != event.Titled || last.Seq != before.Seq+1 {
		t.Errorf("the last event is %+v, after %d", last, before.Seq)
	}
	if err := s.Rename("1_1", "x", time.Now()); !errors.Is(err, ErrUnknown) {
		t.Errorf("rename of an unknown session: %v", err)
	}
}

func TestALiveSessionIsNeitherDeletedNorRenamed(t *testing.T) {
	s := newStore(t)
	l, err := s.Create(id)
	if err != nil {
		t.Fatal(err)
	}
	appendAll(t, l, opened(id), user(2, "x"))
	if err := s.Remove(id); !errors.Is(err, ErrInUse) {
		t.Errorf("Remove: %v", err)
	}
	if err := s.Rename(id, "x", time.Now()); !errors.Is(err, ErrInUse) {
		t.Errorf("Rename: %v", err)
	}
	l.Close()
	if err := s.Remove(id); err != nil {
		t.Error(err)
	}
	if err := s.Remove(id); !errors.Is(err, ErrUnknown) {
		t.Errorf("Remove again: %v", err)
	}
	for _, bad := range []string{"../../x", "", "1_1/../../x"} {
		if err := s.Remove(bad); !errors.Is(err, ErrUnknown) {
			t.Errorf("Remove(%q) = %v", bad, err)
		}
	}
}

func TestSearch(t *testing.T) {
	s := newStore(t)
	long(t, s, id, 5)
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"an answer", "answer 3", []string{"model: Answer 3 has a Needle."}},
		{"letter case", "NEEDLE", []string{"model: Answer 0 has a Needle.", "model: Answer 1 has a Needle.", "model: Answer 2 has a Needle."}},
		{"a request", "request 4", []string{"you: request 4"}},
		{"a title", "in the middle", []string{"title: given in the middle"}},
		{"only in an attachment", "attachment", nil},
		{"nowhere", "zebra", nil},
	} {
		hits, err := s.Search(c.text, "/w", "coding")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, h := range hits {
			got = append(got, h.Lines...)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if hits, _ := s.Search("needle", "/elsewhere", ""); len(hits) != 0 {
		t.Errorf("another workspace: %v", hits)
	}
}

// S11: a list is not upset by what is in the directory or in a file.
func TestS11AHostileFileInAList(t *testing.T) {
	s := newStore(t)
	header := `{"seq":1,"event":"session","session":{"id":"` + id + `","workspace":"/w","profile":"coding"}}` + "\n"
	for name, content := range map[string]string{
		"a line of 66 MB":          header + strings.Repeat("x", 66<<20) + "\n" + `{"seq":2,"event":"user","text":"late"}` + "\n",
		"another session's header": strings.Replace(header, id, "1764509281_2", 1) + `{"seq":2,"event":"user","text":"x"}` + "\n",
		"no header":                `{"seq":2,"event":"user","text":"x"}` + "\n",
		"a header without session": `{"seq":1,"event":"session"}` + "\n",
		"zeros":                    header + strings.Repeat("\x00", 70_000),
	} {
		write(t, s, id, content)
		start := time.Now()
		list, err := s.List("", "")
		want := 0
		if name == "a line of 66 MB" {
			want = 1 // the request behind it is found
		}
		if err != nil || len(list) != want {
			t.Errorf("%s: %v, %v", name, list, err)
		}
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("%s took %v", name, took)
		}
	}
}

func BenchmarkList(b *testing.B) {
	s, err := Open(filepath.Join(b.TempDir(), "sessions"))
	if err != nil {
		b.Fatal(err)
	}
	for i := range 50 {
		long(b, s, fmt.Sprintf("17645092%02d_1", i+10), 400)
	}
	for b.Loop() {
		if list, err := s.List("", ""); err != nil || len(list) != 50 {
			b.Fatal(len(list), err)
		}
	}
}
