package checkpoint

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
)

// The stat cache of the last scan lies beside the packs, so that a new session does
// not read what has not changed. It only saves reading: each content that it names
// must be in the store, or the file is read. A damaged one counts as none.

const cacheHead = "zcoder stat cache 1\n"

func (k *Keeper) cachePath() string { return filepath.Join(k.store.dir, "stats") }

// saveCache writes the stat cache when it is out of date.
func (k *Keeper) saveCache() error {
	k.mu.Lock()
	now, due := k.now, k.stale && !k.known
	k.stale = false
	k.mu.Unlock()
	if !due {
		return nil
	}
	w := &cacheWriter{}
	w.b.WriteString(cacheHead)
	w.dir(now)
	sum := sha1.Sum(w.b.Bytes())
	w.b.Write(sum[:])
	temp := filepath.Join(k.store.dir, "tmp-"+randomName())
	err := os.WriteFile(temp, w.b.Bytes(), 0o600)
	if err == nil {
		err = os.Rename(temp, k.cachePath())
	}
	if err != nil {
		os.Remove(temp)
		return fmt.Errorf("write stat cache: %w", err)
	}
	return nil
}

// loadCache returns the state of the last scan of this workspace, or nil.
func (k *Keeper) loadCache() *dir {
	raw, err := os.ReadFile(k.cachePath())
	if err != nil || len(raw) < len(cacheHead)+sha1.Size || !bytes.HasPrefix(raw, []byte(cacheHead)) {
		return nil
	}
	body, sum := raw[:len(raw)-sha1.Size], raw[len(raw)-sha1.Size:]
	if want := sha1.Sum(body); !bytes.Equal(want[:], sum) {
		return nil
	}
	r := &cacheReader{rest: body[len(cacheHead):]}
	d := r.dir(0)
	if r.err != nil {
		return nil
	}
	return d
}

type cacheWriter struct{ b bytes.Buffer }

func (w *cacheWriter) number(v uint64) { w.b.Write(binary.AppendUvarint(w.b.AvailableBuffer(), v)) }

// dir writes the entries that stand for content or for directories.
func (w *cacheWriter) dir(d *dir) {
	n := uint64(0)
	for i := range d.entries {
		if cached(&d.entries[i]) {
			n++
		}
	}
	w.number(n)
	for i := range d.entries {
		e := &d.entries[i]
		if !cached(e) {
			continue
		}
		w.number(uint64(e.kind))
		w.number(uint64(len(e.name)))
		w.b.WriteString(e.name)
		if e.kind == folder {
			w.dir(e.dir)
			continue
		}
		w.b.Write(e.hash[:])
		for _, v := range []uint64{e.stamp.dev, e.stamp.ino, uint64(e.stamp.size), uint64(e.stamp.mtime), uint64(e.stamp.ctime), uint64(e.stamp.mode)} {
			w.number(v)
		}
	}
}

func cached(e *entry) bool {
	return (e.kind == file || e.kind == link) && !e.racy || e.kind == folder && e.dir != nil
}

type cacheReader struct {
	rest []byte
	err  error
}

var errCache = errors.New("the stat cache is damaged")

func (r *cacheReader) number() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.err = errCache
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *cacheReader) bytes(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.err = errCache
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *cacheReader) dir(depth int) *dir {
	d := &dir{}
	n := r.number()
	if n > uint64(len(r.rest)) || depth > maxDepth+1 {
		r.err = errCache
	}
	if r.err == nil {
		d.entries = make([]entry, 0, n)
	}
	for ; n > 0 && r.err == nil; n-- {
		d.entries = append(d.entries, r.entry(depth))
	}
	return d
}

func (r *cacheReader) entry(depth int) entry {
	e := entry{kind: kind(r.number())}
	e.name = string(r.bytes(r.number()))
	if e.kind == folder {
		e.dir = r.dir(depth + 1)
		return e
	}
	copy(e.hash[:], r.bytes(uint64(len(plumbing.ZeroHash))))
	e.stamp = stamp{dev: r.number(), ino: r.number(), size: int64(r.number()), mtime: int64(r.number()), ctime: int64(r.number()), mode: uint32(r.number())}
	return e
}
