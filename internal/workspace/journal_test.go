package workspace

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func journals(t testing.TB, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, journalPattern))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// abandon leaves a journal as a dead process does: with its lines and no lock.
func abandon(t testing.TB, dir string, notes ...note) {
	t.Helper()
	var b strings.Builder
	for _, n := range notes {
		fmt.Fprintf(&b, "\n{\"dir\":%q,\"dev\":%d,\"ino\":%d,\"name\":%q}\n", n.Dir, n.Dev, n.Ino, n.Name)
	}
	b.WriteString("\n{\"dir\":\"/cut sho")
	put(t, filepath.Join(dir, "temp-dead.jsonl"), b.String())
}

func noteOf(t testing.TB, dir, name string) note {
	t.Helper()
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	n := note{Dir: dir, Name: name}
	n.Dev, n.Ino = identity(info)
	return n
}

func TestCleanTempsRemovesOnlyOurs(t *testing.T) {
	dir, other, journal := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "[odd]*")
	const ours, link, folder = tempPrefix + "00112233aabbccdd", tempPrefix + "1111111111111111", tempPrefix + "2222222222222222"
	for _, name := range []string{ours, "main.go", tempPrefix + "short", tempPrefix + "00112233AABBCCDD"} {
		put(t, filepath.Join(dir, name), "x")
		put(t, filepath.Join(other, name), "x")
	}
	put(t, filepath.Join(dir, folder, "x"), "x")
	if err := os.Symlink(filepath.Join(other, "main.go"), filepath.Join(dir, link)); err != nil {
		t.Fatal(err)
	}
	moved := noteOf(t, other, ours)
	moved.Ino++ // the directory is another one now
	abandon(t, journal,
		noteOf(t, dir, ours), noteOf(t, dir, "main.go"), noteOf(t, dir, tempPrefix+"short"), noteOf(t, dir, tempPrefix+"00112233AABBCCDD"),
		noteOf(t, dir, "../main.go"), noteOf(t, dir, link), noteOf(t, dir, folder), moved, note{Dir: filepath.Join(dir, "absent"), Name: ours})
	if err := CleanTemps(journal); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(dir, ours)); err == nil {
		t.Error("our temporary file is left")
	}
	for _, path := range []string{
		filepath.Join(dir, "main.go"), filepath.Join(dir, tempPrefix+"short"), filepath.Join(dir, tempPrefix+"00112233AABBCCDD"),
		filepath.Join(dir, link), filepath.Join(dir, folder), filepath.Join(other, "main.go"), filepath.Join(other, ours),
	} {
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("%s was removed", path)
		}
	}
	if left := journals(t, journal); len(left) > 0 {
		t.Errorf("journals left: %q", left)
	}
}

func TestCleanTempsLeavesTheLiving(t *testing.T) {
	journal := filepath.Join(t.TempDir(), "j")
	w, root := open(t, Options{Journal: journal})
	if err := write(t, w, "a", "x"); err != nil {
		t.Fatal(err)
	}
	dir, err := w.openDir(".")
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	name, err := w.newTemp(dir, root)
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(root, name), "in work")
	if err := CleanTemps(journal); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(root, name)); err != nil {
		t.Error("the file of a living process was removed")
	}
	w.Close()
	if err := CleanTemps(journal); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(root, name)); err == nil {
		t.Error("the file of an ended process is left")
	}
}

func TestJournalGoesWithWorkspace(t *testing.T) {
	journal := filepath.Join(t.TempDir(), "j")
	w, _ := open(t, Options{Journal: journal})
	if err := write(t, w, "a", "x"); err != nil {
		t.Fatal(err)
	}
	if n := len(journals(t, journal)); n != 1 {
		t.Errorf("%d journals while open", n)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(journals(t, journal)); n != 0 {
		t.Errorf("%d journals after closing", n)
	}
	if err := CleanTemps(filepath.Join(journal, "absent")); err != nil {
		t.Error(err)
	}
}

func TestNoJournalNoWrite(t *testing.T) {
	blocked := filepath.Join(t.TempDir(), "file")
	put(t, blocked, "x")
	w, root := open(t, Options{Journal: filepath.Join(blocked, "j")})
	if err := write(t, w, "a", "x"); err == nil {
		t.Error("a file was written without a note")
	}
	if _, err := os.Lstat(filepath.Join(root, "a")); err == nil {
		t.Error("the file is there")
	}
}

// The writer of the kill test: it replaces two files by turns with content that
// tells a whole file from a half one.
const (
	writerRoot    = "ZCODER_TEST_WRITER_ROOT"
	writerJournal = "ZCODER_TEST_WRITER_JOURNAL"
)

func whole(i int) string { return strings.Repeat(fmt.Sprintf("line %08d\n", i), 4000) }

func TestWriterProcess(t *testing.T) {
	root := os.Getenv(writerRoot)
	if root == "" {
		t.Skip("only runs as a child of TestKill")
	}
	w, err := Open(root, Options{Journal: os.Getenv(writerJournal)})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("ready")
	for i := 0; ; i++ {
		a, b := resolve(t, w, "a"), resolve(t, w, "new/b")
		err := w.Apply(Change{Path: a, Content: []byte(whole(i)), Expect: stamp(t, w, a)}, Change{Path: b, Content: []byte(whole(i)), Expect: stamp(t, w, b)})
		if err != nil {
			t.Fatal(err)
		}
		if i%5 == 4 {
			b = resolve(t, w, "new/b")
			if err := w.Apply(Change{Path: b, Remove: true, Expect: stamp(t, w, b)}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestKill kills a writer at a random moment, many times. What is there afterwards
// is whole, and the next start finds all temporary files.
func TestKill(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 30
	}
	const workers = 3
	t.Run("workers", func(t *testing.T) {
		for n := range workers {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()
				killRounds(t, rounds/workers)
			})
		}
	})
}

func killRounds(t *testing.T, rounds int) {
	root, journal := fastDir(t), filepath.Join(fastDir(t), "journal")
	put(t, filepath.Join(root, "a"), whole(0))
	left := 0
	for round := range rounds {
		killWriter(t, root, journal)
		left += len(temps(t, root))
		if err := CleanTemps(journal); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if found := temps(t, root); len(found) > 0 {
			t.Fatalf("round %d leaves %q", round, found)
		}
		if found := journals(t, journal); len(found) > 0 {
			t.Fatalf("round %d leaves %q", round, found)
		}
		for _, name := range []string{"a", "new/b"} {
			content, err := os.ReadFile(filepath.Join(root, name))
			if os.IsNotExist(err) && name != "a" {
				continue
			}
			first, _, _ := strings.Cut(string(content), "\n")
			if err != nil || string(content) != strings.Repeat(first+"\n", 4000) {
				t.Fatalf("round %d: %s is not whole: %d bytes, %v", round, name, len(content), err)
			}
		}
	}
	t.Logf("%d rounds left %d temporary files to clean", rounds, left)
}

// killWriter starts a writer and kills it up to 3 ms after its first sign of life.
func killWriter(t *testing.T, root, journal string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestWriterProcess$")
	cmd.Env = append(os.Environ(), writerRoot+"="+root, writerJournal+"="+journal)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 16)); err != nil {
		t.Error(err)
	}
	<-time.After(time.Duration(rand.IntN(3000)) * time.Microsecond)
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // it was killed
}
