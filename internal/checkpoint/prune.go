package checkpoint

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"golang.org/x/sys/unix"

	"zcoder/internal/ownfile"
)

const (
	// maxPacks is how many packs a store has before they are made one.
	maxPacks = 64
	// smallPack is the size in bytes up to which a pack is worth being copied for that.
	smallPack = 16 << 20
)

// count returns how many packs there are, and their size in bytes.
func (s *store) count() (n int, size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.packs {
		size += p.size
	}
	return len(s.packs), size
}

// prune keeps the stores of all workspaces within their bound and this one in few
// packs. The caller does not share the store.
func (k *Keeper) prune(ctx context.Context) error {
	if err := Prune(ctx, k.o.Store, k.limits.Store); err != nil {
		return err
	}
	if n, _ := k.store.count(); n <= maxPacks {
		return k.dropTurns(ctx)
	}
	if err := withStore(k.store.dir, func(s *store) error { return s.collect(ctx) }); err != nil {
		return err
	}
	return k.dropTurns(ctx)
}

// dropTurns forgets the oldest turns of this session while the stores are still too
// large: all other sessions that could go are gone.
func (k *Keeper) dropTurns(ctx context.Context) error {
	for {
		size, err := storesSize(k.o.Store)
		if err != nil || size <= k.limits.Store {
			return err
		}
		k.mu.Lock()
		var last ID
		if n := len(k.history.turns); n > 1 {
			last = k.history.turns[(n-1)/2].id
		}
		k.mu.Unlock()
		if last == 0 {
			return nil
		}
		l := line{Kind: lineDrop, Turn: last}
		if err := k.manifest.append(l); err != nil {
			return err
		}
		k.mu.Lock()
		k.history.apply(l)
		k.mu.Unlock()
		if err := withStore(k.store.dir, func(s *store) error { return s.collect(ctx) }); err != nil {
			return err
		}
	}
}

// Prune removes the oldest sessions from the stores below dir until all of them
// together have at most limit bytes, and what no session needs any more. Sessions and
// stores that a process uses stay. It blocks on the disk.
func Prune(ctx context.Context, dir string, limit int64) error {
	size, err := storesSize(dir)
	if err != nil || size <= limit {
		return err
	}
	sessions, err := allSessions(dir)
	if err != nil {
		return err
	}
	for _, s := range sessions {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := withStore(s.store, func(st *store) error { return st.forget(ctx, s.path) }); err != nil {
			return fmt.Errorf("prune checkpoints: %w", err)
		}
		if size, err = storesSize(dir); err != nil || size <= limit {
			return err
		}
	}
	return nil
}

// storesSize adds up the sizes of all files.
func storesSize(dir string) (size int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || e.IsDir() {
			return err
		}
		if info, err := e.Info(); err == nil {
			size += info.Size()
		}
		return nil
	})
	return size, err
}

type sessionFile struct {
	store, path string
	changed     time.Time
}

// allSessions lists the manifests of all stores, the oldest first.
func allSessions(dir string) ([]sessionFile, error) {
	stores, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var list []sessionFile
	for _, s := range stores {
		at := filepath.Join(dir, s.Name())
		files, err := os.ReadDir(filepath.Join(at, "sessions"))
		if err != nil {
			continue
		}
		for _, f := range files {
			if info, err := f.Info(); err == nil && strings.HasSuffix(f.Name(), ".jsonl") {
				list = append(list, sessionFile{at, filepath.Join(at, "sessions", f.Name()), info.ModTime()})
			}
		}
	}
	slices.SortFunc(list, func(a, b sessionFile) int {
		return cmp.Or(a.changed.Compare(b.changed), strings.Compare(a.path, b.path))
	})
	return list, nil
}

// withStore calls do with a store that nobody else uses meanwhile. A store in use is
// left alone.
func withStore(dir string, do func(*store) error) error {
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	s := &store{dir: dir, lock: lock}
	defer s.close()
	ok, err := lockFile(lock.Fd(), unix.LOCK_EX)
	if err != nil || !ok {
		return err
	}
	if err := s.load(); err != nil {
		return err
	}
	return do(s)
}

// forget removes a session that no process has open, and what only it needed.
func (s *store) forget(ctx context.Context, path string) error {
	f, err := ownfile.Open(path, os.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	ok, err := lockFile(f.Fd(), unix.LOCK_EX)
	if err != nil || !ok {
		return err
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	return s.collect(ctx)
}

// collect keeps what the sessions need. Packs of which much is needed stay, others
// are copied into one, and the rest goes. The lock is held exclusively.
func (s *store) collect(ctx context.Context) error {
	needed, err := s.needed(ctx)
	if err != nil {
		return err
	}
	out := newPackWriter(s)
	defer out.abort()
	var gone []*pack
	many := len(s.packs) > maxPacks
	for _, p := range slices.Clone(s.packs) {
		if err := ctx.Err(); err != nil {
			return err
		}
		raws, live, err := p.raws(needed)
		if err != nil {
			return err
		}
		if live*4 >= p.size*3 && !(many && p.size <= smallPack) {
			continue
		}
		if err := s.copyRaws(out, p, raws); err != nil {
			return err
		}
		gone = append(gone, p)
	}
	// The count comes first: who sees it reads the packs anew.
	if _, err := s.lock.WriteAt(binary.BigEndian.AppendUint64(nil, s.prunings()+1), 0); err != nil {
		return err
	}
	if err := out.commit(); err != nil {
		return err
	}
	return s.removePacks(gone)
}

// removePacks removes packs, and what kills left among them.
func (s *store) removePacks(gone []*pack) error {
	var errs []error
	for _, p := range gone {
		errs = append(errs, os.Remove(filepath.Join(s.packDir(), p.name+".idx")), os.Remove(filepath.Join(s.packDir(), p.name+".pack")))
	}
	s.mu.Lock()
	s.packs = slices.DeleteFunc(s.packs, func(p *pack) bool { return slices.Contains(gone, p) })
	alive := map[string]bool{}
	for _, p := range s.packs {
		alive[p.name] = true
	}
	s.mu.Unlock()
	entries, err := os.ReadDir(s.packDir())
	for _, e := range entries {
		if name := strings.TrimSuffix(strings.TrimSuffix(e.Name(), ".pack"), ".idx"); !alive[name] {
			errs = append(errs, os.Remove(filepath.Join(s.packDir(), e.Name())))
		}
	}
	return errors.Join(err, errors.Join(errs...))
}

// needed returns the objects that the sessions of the store need.
func (s *store) needed(ctx context.Context) (map[plumbing.Hash]bool, error) {
	files, err := os.ReadDir(s.sessionDir())
	if err != nil {
		return nil, err
	}
	needed := map[plumbing.Hash]bool{}
	for _, f := range files {
		h, err := readManifest(filepath.Join(s.sessionDir(), f.Name()))
		if err != nil {
			return nil, fmt.Errorf("read session %q: %w", f.Name(), err)
		}
		for _, tree := range h.trees() {
			if err := s.reach(ctx, tree, needed); err != nil {
				return nil, err
			}
		}
	}
	return needed, nil
}

// reach adds a tree and all in it. What is missing or damaged is lost already.
func (s *store) reach(ctx context.Context, tree plumbing.Hash, needed map[plumbing.Hash]bool) error {
	if tree.IsZero() || needed[tree] || !s.has(tree) {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	needed[tree] = true
	raw, err := s.read(tree, maxTree)
	if err != nil {
		return nil
	}
	for len(raw) > 0 {
		e, rest, err := decodeEntry(raw)
		if err != nil {
			return nil
		}
		raw = rest
		if e.kind != folder {
			needed[e.hash] = true
		} else if err := s.reach(ctx, e.hash, needed); err != nil {
			return err
		}
	}
	return nil
}

// rawEntry is a compressed entry of a pack.
type rawEntry struct {
	packed
	size int64
}

// raws returns the needed entries of a pack in the order of the file, and their size.
func (p *pack) raws(needed map[plumbing.Hash]bool) (list []rawEntry, size int64, err error) {
	entries, err := p.index.EntriesByOffset()
	if err != nil {
		return nil, 0, err
	}
	defer entries.Close()
	var all []*idxfile.Entry
	for {
		e, err := entries.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, 0, err
		}
		all = append(all, e)
	}
	end := p.size - int64(len(plumbing.ZeroHash))
	for i := len(all) - 1; i >= 0; i-- {
		e := all[i]
		if n := end - int64(e.Offset); needed[e.Hash] && n > 0 {
			list = append(list, rawEntry{packed{e.Hash, int64(e.Offset), e.CRC32}, n})
			size += n
		}
		end = int64(e.Offset)
	}
	slices.Reverse(list)
	return list, size, nil
}

// copyRaws copies entries of a pack as they are. An entry that is damaged is lost
// already and is left out.
func (s *store) copyRaws(out *packWriter, p *pack, raws []rawEntry) error {
	if len(raws) == 0 {
		return nil
	}
	f, err := os.Open(filepath.Join(s.packDir(), p.name+".pack"))
	if err != nil {
		return err
	}
	defer f.Close()
	for _, r := range raws {
		sum := crc32.NewIEEE()
		part := io.NewSectionReader(f, r.at, r.size)
		if _, err := io.Copy(sum, part); err != nil || sum.Sum32() != r.crc {
			continue
		}
		if err := out.appendRaw(r, io.NewSectionReader(f, r.at, r.size)); err != nil {
			return err
		}
	}
	return nil
}

func (p *packWriter) appendRaw(r rawEntry, content io.Reader) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen[r.hash] {
		return nil
	}
	if err := p.begin(); err != nil {
		return err
	}
	if _, err := io.Copy(struct{ io.Writer }{p.w}, bufio.NewReader(content)); err != nil {
		return fmt.Errorf("write pack: %w", err)
	}
	p.note(r.hash, r.size, r.crc)
	return nil
}
