package audit

import (
	"bytes"
	"path/filepath"
	"testing"

	"zcoder/internal/approval"
)

// FuzzLog puts any bytes in the place of a log. Verify and Open must cope, nothing
// that was there may be lost, a whole chain stays whole, a broken one stays broken,
// and the chain never begins anew.
func FuzzLog(f *testing.F) {
	good := forged(3)
	torn := append(bytes.Clone(good), good[:50]...)
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add(good[:len(good)-9])
	f.Add(torn)
	f.Add(append(bytes.Clone(good), "x\n\n{"...))
	f.Add(bytes.Replace(good, []byte("forged"), []byte("broken"), 2))
	f.Add(bytes.Replace(good, []byte(`"n":2`), []byte(`"n":999999999999999999`), 1))
	f.Add(bytes.Replace(good, []byte(`"n":3`), []byte(`"n":1000000000000000`), 1))
	f.Add([]byte("\n"))
	f.Fuzz(func(t *testing.T, log []byte) {
		dir := t.TempDir()
		path := filepath.Join(dir, logName)
		write(t, path, log)
		write(t, filepath.Join(dir, headName), first())
		before := verified(t, dir)
		for range 2 {
			l, err := Open(dir, Options{Now: clock()})
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Record(approval.Record{Kind: "after"}); err != nil {
				t.Fatal(err)
			}
			_ = l.Close()
			after := verified(t, dir)
			if after.Whole() != before.Whole() || after.Unfinished != 0 {
				t.Fatalf("before %+v, after %+v", before, after)
			}
		}
		now := read(t, path)
		if !bytes.HasPrefix(now, log) {
			t.Fatal("the log was changed")
		}
		added := bytes.TrimPrefix(now[len(log):], []byte{'\n'})
		line, _, _ := bytes.Cut(added, []byte{'\n'})
		l, payload, ok := parseLine(line)
		if !ok || (before.Records > 0 || !before.Whole()) && chained(nil, genesis(), payload) == l.hash {
			t.Fatalf("the chain was begun anew with %s", line)
		}
	})
}
