package relay

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Places are the values that the registry's place follows from. All but UID may be
// empty.
type Places struct {
	Set     string // $ZCODER_RELAY_DIR
	Runtime string // $XDG_RUNTIME_DIR
	Temp    string // $TMPDIR
	UID     int
}

// Directory returns where the registry stands. Open refuses it when it is not safe.
func Directory(p Places) string {
	switch {
	case p.Set != "":
		return p.Set
	case p.Runtime != "":
		return filepath.Join(p.Runtime, "zcoder-agents")
	case p.Temp != "":
		return filepath.Join(p.Temp, userDirectory(p.UID))
	}
	return filepath.Join("/tmp", userDirectory(p.UID))
}

func userDirectory(uid int) string { return "zcoder-" + strconv.Itoa(uid) + "-agents" }

// Names in the registry.
const (
	prefix         = "a-"
	socketSuffix   = ".sock"
	manifestSuffix = ".json"
	draftPrefix    = ".a-" // of a manifest that is being written
	draftSuffix    = ".tmp"
)

// Bounds of a look at the registry.
const (
	maxEntries   = 4096  // names that are read
	maxManifests = 256   // manifests that are read
	maxManifest  = 16384 // bytes of one
)

// staleAge is how old something must be to count as left over: its maker may be
// between two steps.
const staleAge = time.Minute

// registry is the directory in which instances find each other. Its files are
// reached through the directory that was checked.
type registry struct {
	path string
	uid  int
	root *os.Root

	mu    sync.Mutex
	cache map[string]cached // of manifests, by instance
}

// cached is a manifest as it was read.
type cached struct {
	info fs.FileInfo
	peer Peer
}

// openRegistry makes the directory if it is not there, and refuses one that others
// could have a hand in.
func openRegistry(path string, uid int) (*registry, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("open the relay directory %q: it is not an absolute path", path)
	}
	path = filepath.Clean(path)
	if err := os.Mkdir(path, 0o700); err == nil {
		err = os.Chmod(path, 0o700) // a strict umask may have taken bits of ours
		if err != nil {
			return nil, fmt.Errorf("open the relay directory: %w", err)
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("open the relay directory: %w", err)
	}
	if _, err := checkDirectory(path, uid); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("open the relay directory: %w", err)
	}
	r := &registry{path: path, uid: uid, root: root, cache: map[string]cached{}}
	if err := r.check(); err != nil {
		root.Close()
		return nil, err
	}
	return r, nil
}

// checkDirectory reports whether path is a real directory of ours with mode 0700.
func checkDirectory(path string, uid int) (fs.FileInfo, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, fmt.Errorf("check the relay directory: %w", err)
	}
	switch owner, ok := ownerOf(info); {
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, fmt.Errorf("check the relay directory %q: it is a link", path)
	case !info.IsDir():
		return nil, fmt.Errorf("check the relay directory %q: it is no directory", path)
	case !ok || owner != uid:
		return nil, fmt.Errorf("check the relay directory %q: it belongs to user %d", path, owner)
	case info.Mode().Perm() != 0o700:
		return nil, fmt.Errorf("check the relay directory %q: its mode is %04o, not 0700", path, info.Mode().Perm())
	}
	return info, nil
}

// check reports whether the path still leads to the directory that is open, and that
// is still safe. Sockets are reached by path.
func (r *registry) check() error {
	info, err := checkDirectory(r.path, r.uid)
	if err != nil {
		return err
	}
	open, err := r.root.Stat(".")
	if err != nil || !os.SameFile(info, open) {
		return fmt.Errorf("check the relay directory %q: it was replaced", r.path)
	}
	return nil
}

func (r *registry) close() error { return r.root.Close() }

func socketName(id string) string   { return prefix + id + socketSuffix }
func manifestName(id string) string { return prefix + id + manifestSuffix }
func draftName(id string) string    { return draftPrefix + id + draftSuffix }

func (r *registry) socketPath(id string) string { return filepath.Join(r.path, socketName(id)) }

// socket returns what stands where an instance's socket should, if it is a socket of
// ours.
func (r *registry) socket(id string) (fs.FileInfo, bool) {
	info, err := r.root.Lstat(socketName(id))
	return info, err == nil && info.Mode().Type() == fs.ModeSocket && r.ours(info)
}

func (r *registry) ours(info fs.FileInfo) bool {
	owner, ok := ownerOf(info)
	return ok && owner == r.uid
}

// publish replaces an instance's manifest as a whole.
func (r *registry) publish(id string, data []byte) error {
	draft := draftName(id)
	if err := r.root.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("publish the manifest: %w", err)
	}
	f, err := r.root.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("publish the manifest: %w", err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = r.root.Rename(draft, manifestName(id))
	}
	if err != nil {
		return fmt.Errorf("publish the manifest: %w", errors.Join(err, r.root.Remove(draft)))
	}
	return nil
}

// names lists the registry, a bounded part of it.
func (r *registry) names() ([]string, error) {
	f, err := r.root.Open(".")
	if err != nil {
		return nil, fmt.Errorf("list the relay directory: %w", err)
	}
	defer f.Close()
	names, err := f.Readdirnames(maxEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("list the relay directory: %w", err)
	}
	return names, nil
}

// listed returns the instances whose manifests can be believed, by nothing but the
// files: whether they live is not known.
func (r *registry) listed() ([]Peer, error) {
	names, err := r.names()
	if err != nil {
		return nil, err
	}
	var peers []Peer
	read := 0
	for _, name := range names {
		id, ok := idOf(name, prefix, manifestSuffix)
		if !ok {
			continue
		}
		if read++; read > maxManifests {
			break
		}
		if p, err := r.manifest(id); err == nil {
			peers = append(peers, p)
		}
	}
	return peers, nil
}

func idOf(name, before, after string) (string, bool) {
	rest, ok := strings.CutPrefix(name, before)
	if !ok {
		return "", false
	}
	id, ok := strings.CutSuffix(rest, after)
	return id, ok && pidOf(id) != 0
}

// manifest reads an instance's manifest: a small regular file of ours, never through
// a link. One that did not change is not read again.
func (r *registry) manifest(id string) (Peer, error) {
	info, err := r.root.Lstat(manifestName(id))
	if err != nil {
		return Peer{}, fmt.Errorf("read manifest of %q: %w", id, err)
	}
	r.mu.Lock()
	known, ok := r.cache[id]
	r.mu.Unlock()
	if ok && os.SameFile(known.info, info) && known.info.ModTime().Equal(info.ModTime()) && known.info.Size() == info.Size() {
		return known.peer, nil
	}
	peer, info, err := r.readManifest(id)
	if err != nil {
		return Peer{}, fmt.Errorf("read manifest of %q: %w", id, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.cache) >= maxManifests {
		clear(r.cache)
	}
	r.cache[id] = cached{info, peer}
	return peer, nil
}

func (r *registry) readManifest(id string) (Peer, fs.FileInfo, error) {
	f, err := r.root.OpenFile(manifestName(id), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return Peer{}, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Peer{}, nil, err
	}
	if !info.Mode().IsRegular() || !r.ours(info) || info.Mode().Perm()&0o022 != 0 {
		return Peer{}, nil, errors.New("it is no private file of ours")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	if err != nil {
		return Peer{}, nil, err
	}
	if len(data) > maxManifest {
		return Peer{}, nil, fmt.Errorf("it has more than %d bytes", maxManifest)
	}
	peer, err := parseManifest(data, id)
	return peer, info, err
}

func ownerOf(info fs.FileInfo) (int, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}
