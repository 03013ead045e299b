package checkpoint

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"golang.org/x/sys/unix"

	"zcoder/internal/ownfile"
)

// store is the private directory of one workspace: a bare git repository without
// refs, with the manifests of its sessions beside the objects. Several processes use
// it at once: packs only come, except while a process that prunes holds the lock.
type store struct {
	dir  string
	lock *os.File // "lock"; its content counts the prunings

	lockMu  sync.Mutex // guards sharers, and the waiting for lock
	sharers int

	squeezers sync.Pool

	mu     sync.Mutex
	packs  []*pack
	pruned uint64 // the content of lock when packs was read
}

type pack struct {
	name  string
	index *idxfile.MemoryIndex
	size  int64
}

// storeDir names the directory of a workspace below base.
func storeDir(base, root string) string {
	sum := sha256.Sum256([]byte(root))
	return filepath.Join(base, hex.EncodeToString(sum[:8]))
}

func openStore(base, root string) (*store, error) {
	s := &store{dir: storeDir(base, root)}
	for _, dir := range []string{s.packDir(), s.sessionDir(), filepath.Join(s.dir, "refs")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("make checkpoint store: %w", err)
		}
	}
	// With these git reads the store: a way to the files when this program is gone.
	skeleton := map[string]string{
		"HEAD":      "ref: refs/heads/none\n",
		"config":    "[core]\n\trepositoryformatversion = 0\n\tbare = true\n[gc]\n\tauto = 0\n",
		"workspace": root + "\n",
	}
	for name, content := range skeleton {
		path := filepath.Join(s.dir, name)
		if _, err := os.Lstat(path); err == nil {
			continue
		}
		if err := ownfile.Replace(path, []byte(content), 0o600); err != nil {
			return nil, fmt.Errorf("make checkpoint store: %w", err)
		}
	}
	lock, err := ownfile.Open(filepath.Join(s.dir, "lock"), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, fmt.Errorf("open checkpoint store: %w", err)
	}
	s.lock = lock
	return s, s.sweep()
}

// sweep removes the temporary files that killed programs left, unless another program
// uses the store: it may be writing a pack.
func (s *store) sweep() error {
	ok, err := lockFile(s.lock.Fd(), unix.LOCK_EX)
	if err != nil || !ok {
		return err
	}
	defer unix.Flock(int(s.lock.Fd()), unix.LOCK_UN)
	ownfile.Sweep(s.dir)
	ownfile.Sweep(s.packDir())
	return nil
}

func (s *store) packDir() string    { return filepath.Join(s.dir, "objects", "pack") }
func (s *store) sessionDir() string { return filepath.Join(s.dir, "sessions") }
func (s *store) close() error       { return s.lock.Close() }

// lockPoll is how often a held lock is asked for again.
const lockPoll = 50 * time.Millisecond

// share takes the lock that keeps others from pruning, from the first question
// whether an object is there until a manifest names it. It reads the packs anew when
// somebody pruned since. The caller calls unlock.
func (s *store) share(ctx context.Context) error {
	s.lockMu.Lock()
	defer s.lockMu.Unlock()
	if s.sharers > 0 {
		s.sharers++
		return nil
	}
	for {
		ok, err := lockFile(s.lock.Fd(), unix.LOCK_SH)
		if err != nil {
			return fmt.Errorf("share checkpoint store: %w", err)
		}
		if ok {
			break
		}
		wait := time.NewTimer(lockPoll)
		select {
		case <-ctx.Done():
			wait.Stop()
			return ctx.Err()
		case <-wait.C:
		}
	}
	if err := s.refresh(); err != nil {
		_ = unix.Flock(int(s.lock.Fd()), unix.LOCK_UN)
		return err
	}
	s.sharers = 1
	return nil
}

func (s *store) unlock() {
	s.lockMu.Lock()
	defer s.lockMu.Unlock()
	if s.sharers--; s.sharers == 0 {
		_ = unix.Flock(int(s.lock.Fd()), unix.LOCK_UN)
	}
}

// prunings reads the counter in the lock file.
func (s *store) prunings() uint64 {
	var b [8]byte
	_, _ = s.lock.ReadAt(b[:], 0) // a new file is empty and counts as 0
	return binary.BigEndian.Uint64(b[:])
}

func (s *store) refresh() error {
	now := s.prunings()
	s.mu.Lock()
	fresh := s.packs != nil && s.pruned == now
	s.mu.Unlock()
	if fresh {
		return nil
	}
	return s.load()
}

// load reads the indexes of all packs.
func (s *store) load() error {
	now := s.prunings()
	entries, err := os.ReadDir(s.packDir())
	if err != nil {
		return fmt.Errorf("open checkpoint store: %w", err)
	}
	packs := []*pack{}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".idx")
		if !ok || strings.HasPrefix(name, "tmp-") {
			continue
		}
		p, err := s.loadPack(name)
		if err != nil {
			continue // its objects count as missing and are written again
		}
		packs = append(packs, p)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.packs, s.pruned = packs, now
	return nil
}

func (s *store) loadPack(name string) (*pack, error) {
	info, err := os.Stat(filepath.Join(s.packDir(), name+".pack"))
	if err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(filepath.Join(s.packDir(), name+".idx"))
	if err != nil {
		return nil, err
	}
	index := idxfile.NewMemoryIndex()
	if err := idxfile.NewDecoder(bytes.NewReader(raw)).Decode(index); err != nil {
		return nil, fmt.Errorf("read index of pack %q: %w", name, err)
	}
	return &pack{name: name, index: index, size: info.Size()}, nil
}

func (s *store) adopt(p *pack) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.packs = append([]*pack{p}, s.packs...)
}

// has reports whether an object is in the store.
func (s *store) has(h plumbing.Hash) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.packs, func(p *pack) bool {
		ok, _ := p.index.Contains(h)
		return ok
	})
}

func (s *store) find(h plumbing.Hash) (*pack, int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.packs {
		if ok, _ := p.index.Contains(h); !ok {
			continue
		}
		if at, err := p.index.FindOffset(h); err == nil {
			return p, at
		}
	}
	return nil, 0
}

// object is the open content of an object. Its Close reports content that is not
// what the name says.
type object struct {
	kind plumbing.ObjectType
	size int64
	zr   io.ReadCloser
	f    *os.File
	sum  hash.Hash
	want plumbing.Hash
	n    int64
}

// open opens an object for reading.
func (s *store) open(h plumbing.Hash) (*object, error) {
	p, at := s.find(h)
	if p == nil { // another process may have written or repacked it
		if err := s.load(); err != nil {
			return nil, err
		}
		if p, at = s.find(h); p == nil {
			return nil, fmt.Errorf("read checkpoint: object %s is missing", h)
		}
	}
	f, err := os.Open(filepath.Join(s.packDir(), p.name+".pack"))
	if errors.Is(err, fs.ErrNotExist) {
		if err := s.load(); err != nil {
			return nil, err
		}
		if p, at = s.find(h); p == nil {
			return nil, fmt.Errorf("read checkpoint: object %s is missing", h)
		}
		f, err = os.Open(filepath.Join(s.packDir(), p.name+".pack"))
	}
	if err != nil {
		return nil, fmt.Errorf("read checkpoint: %w", err)
	}
	o, err := openObject(f, at, p.size, h)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("read checkpoint: object %s: %w", h, err)
	}
	return o, nil
}

func openObject(f *os.File, at, end int64, h plumbing.Hash) (*object, error) {
	r := bufio.NewReader(io.NewSectionReader(f, at, end-at))
	kind, size, err := readHead(r)
	if err != nil {
		return nil, err
	}
	zr, err := zlib.NewReader(r)
	if err != nil {
		return nil, err
	}
	o := &object{kind: kind, size: size, zr: zr, f: f, sum: sha1.New(), want: h}
	fmt.Fprintf(o.sum, "%s %d\x00", kind, size)
	return o, nil
}

func readHead(r io.ByteReader) (kind plumbing.ObjectType, size int64, err error) {
	c, err := r.ReadByte()
	if err != nil {
		return 0, 0, err
	}
	kind, size = plumbing.ObjectType(c>>4&7), int64(c&15)
	for shift := 4; c&0x80 != 0; shift += 7 {
		if c, err = r.ReadByte(); err != nil || shift > 50 {
			return 0, 0, errors.Join(err, errors.New("its head is damaged"))
		}
		size |= int64(c&0x7f) << shift
	}
	if kind != plumbing.BlobObject && kind != plumbing.TreeObject {
		return 0, 0, errors.New("its head is damaged")
	}
	return kind, size, nil
}

func (o *object) Read(b []byte) (int, error) {
	n, err := o.zr.Read(b)
	o.sum.Write(b[:n])
	o.n += int64(n)
	return n, err
}

// verify reports whether all that was read is what the name of the object says.
func (o *object) verify() error {
	if o.n != o.size || plumbing.Hash(o.sum.Sum(nil)) != o.want {
		return fmt.Errorf("read checkpoint: object %s is damaged", o.want)
	}
	return nil
}

func (o *object) Close() error { return errors.Join(o.zr.Close(), o.f.Close()) }

// read returns an object of at most limit bytes.
func (s *store) read(h plumbing.Hash, limit int64) ([]byte, error) {
	o, err := s.open(h)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	if o.size > limit {
		return nil, fmt.Errorf("read checkpoint: object %s has %d bytes, the limit is %d", h, o.size, limit)
	}
	content := make([]byte, o.size)
	if _, err := io.ReadFull(o, content); err != nil {
		return nil, fmt.Errorf("read checkpoint: object %s: %w", h, err)
	}
	return content, o.verify()
}

// maxTree bounds the size of one directory in the store, in bytes.
const maxTree = 1 << 28

// tree reads a directory. Its subdirectories are read when they are asked for.
func (s *store) tree(h plumbing.Hash) (*dir, error) {
	raw, err := s.read(h, maxTree)
	if err != nil {
		return nil, err
	}
	d, err := decodeTree(raw, func(h plumbing.Hash) ([]byte, error) { return s.read(h, maxTree) })
	if err != nil {
		return nil, fmt.Errorf("read checkpoint: directory %s: %w", h, err)
	}
	d.hash = h
	return d, nil
}

// below returns the directory that a folder entry stands for.
func (s *store) below(e *entry) (*dir, error) {
	if e.dir != nil {
		return e.dir, nil
	}
	return s.tree(e.hash)
}

// writeTree adds a directory whose subdirectories are sealed.
func (p *packWriter) writeTree(q *squeezer, d *dir) error {
	build, meta := d.encode()
	var metaHash plumbing.Hash
	if meta != nil {
		var err error
		if metaHash, err = p.add(q, plumbing.BlobObject, meta); err != nil {
			return err
		}
	}
	var err error
	d.hash, err = p.add(q, plumbing.TreeObject, build(metaHash))
	return err
}

// seal writes the directories of a state that are new, from the leaves up. What
// vanished while it was read is dropped.
func (p *packWriter) seal(q *squeezer, d *dir) error {
	if !d.hash.IsZero() {
		return nil
	}
	kept := d.entries[:0]
	d.total = total{}
	for i := range d.entries {
		e := &d.entries[i]
		if e.kind == vanished {
			continue
		}
		if e.kind == folder && e.dir != nil {
			if err := p.seal(q, e.dir); err != nil {
				return err
			}
			e.hash = e.dir.hash
		}
		d.total.add(e.total())
		kept = append(kept, *e)
	}
	d.entries = kept
	return p.writeTree(q, d)
}
