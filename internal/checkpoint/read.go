package checkpoint

import (
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sys/unix"

	"zcoder/internal/dirfd"
	"zcoder/internal/workspace"
)

const (
	// wholeFile is the size in bytes up to which a file is read into memory at once.
	wholeFile = 1 << 20
	// maxReaders bounds the goroutines that read and compress; half of the processors
	// stay free for the model and the terminal.
	maxReaders = 4
	// readTries is how often a file that changes while it is read is read again.
	readTries = 3
)

// reader reads files of the workspace into a pack. One goroutine uses it.
type reader struct {
	pack  *packWriter
	limit int64 // bytes of one file; more is not kept
	force bool  // make files of this user readable for the moment
	q     *squeezer
	buf   []byte

	torn   bool     // the file that was read last changed each time
	unsure []string // the paths of such files
}

// readAll reads what a scan found to be new and completes the entries. It returns the
// paths of files that changed each time they were read, so that what is kept of them
// may mix two contents.
func readAll(ctx context.Context, root int, todo []group, pack *packWriter, limit int64, bytes *atomic.Int64) ([]string, error) {
	var next atomic.Int64
	var wg sync.WaitGroup
	workers := min(max(runtime.GOMAXPROCS(0)/2, 1), maxReaders, len(todo))
	errs := make([]error, workers)
	readers := make([]reader, workers)
	for w := range workers {
		wg.Go(func() {
			r := &readers[w]
			r.pack, r.limit, r.q = pack, limit, pack.s.squeezer()
			defer pack.s.putSqueezer(r.q)
			for errs[w] == nil {
				i := int(next.Add(1)) - 1
				if i >= len(todo) {
					return
				}
				errs[w] = r.group(ctx, root, todo[i], bytes)
			}
		})
	}
	wg.Wait()
	var unsure []string
	for i := range readers {
		unsure = append(unsure, readers[i].unsure...)
	}
	return unsure, errors.Join(errs...)
}

func (r *reader) group(ctx context.Context, root int, g group, bytes *atomic.Int64) error {
	fd, err := openPath(root, g.rel)
	if err == nil {
		defer unix.Close(fd)
	} else if !unsteadyError(err) {
		return fmt.Errorf("read %q: %w", g.rel, err)
	}
	for _, i := range g.items {
		e := &g.dir.entries[i]
		if err != nil { // the directory went away or became something else
			*e = entry{kind: vanished}
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.entry(fd, e); err != nil {
			return fmt.Errorf("keep %q: %w", joinPath(g.rel, e.name), err)
		}
		if r.torn {
			r.unsure = append(r.unsure, joinPath(g.rel, e.name))
		}
		bytes.Add(e.stamp.size)
	}
	return nil
}

// unsteadyError reports whether err says that a name is not what it was.
func unsteadyError(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

// entry reads a file or a link and completes e: its content gets into the pack, or e
// becomes something that vanished or is not kept. An error is one of the store.
func (r *reader) entry(dir int, e *entry) error {
	r.torn = false
	if e.kind == link {
		return r.link(dir, e)
	}
	for try := 0; ; try++ {
		err := r.file(dir, e, try == readTries-1)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errSizeChanged):
			if try < readTries-1 {
				continue
			}
			*e = e.leave(unsteady)
		case errors.Is(err, unix.ENOENT):
			*e = entry{kind: vanished}
		case unsteadyError(err), errors.Is(err, errNotRegular):
			*e = e.leave(unsteady)
		case errors.Is(err, errTooLarge):
			*e = e.leave(tooLarge)
		case errors.Is(err, errRead):
			*e = e.leave(unreadable)
		default:
			return err
		}
		return nil
	}
}

var (
	errNotRegular = errors.New("it is no regular file any more")
	errTooLarge   = errors.New("it is too large")
	errRead       = errors.New("it cannot be read")
)

func (r *reader) link(dir int, e *entry) error {
	target, err := readLinkAt(dir, e.name)
	if errors.Is(err, unix.ENOENT) {
		*e = entry{kind: vanished}
		return nil
	}
	if err != nil {
		*e = e.leave(unsteady)
		return nil
	}
	e.hash, err = r.pack.add(r.q, plumbing.BlobObject, []byte(target))
	return err
}

// file reads a file once. With last set, the content that was read counts even when
// the file changed meanwhile: it is one that the file may have had.
func (r *reader) file(dir int, e *entry, last bool) error {
	fd, err := r.open(dir, e)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := fstat(fd, &st); err != nil {
		return errors.Join(errRead, err)
	}
	before := stampOf(&st)
	switch {
	case before.mode&unix.S_IFMT != unix.S_IFREG:
		return errNotRegular
	case before.size > r.limit:
		return errTooLarge
	case ofKernelFile(before, e.stamp, fd):
		return errNotRegular
	}
	e.hash, err = r.content(fd, before.size)
	if err != nil {
		return err
	}
	if err := fstat(fd, &st); err != nil {
		return errors.Join(errRead, err)
	}
	after := stampOf(&st)
	if after.size != before.size || after.mtime != before.mtime || after.ctime != before.ctime {
		if !last {
			return errSizeChanged
		}
		e.racy, r.torn = true, true
	}
	if before != e.stamp { // it changed since the scan
		e.stamp, e.mode, e.racy = before, uint32(st.Mode)&0o7777, true
	}
	return nil
}

// ofKernelFile looks at the file system only for a file that is not the one that was
// scanned: directories of the kernel are not entered.
func ofKernelFile(now, scanned stamp, fd int) bool {
	return now.dev != scanned.dev && workspace.OfKernel(fd)
}

func (r *reader) open(dir int, e *entry) (int, error) {
	fd, err := dirfd.File(dir, e.name)
	if r.force && errors.Is(err, unix.EACCES) && e.stamp.mode&unix.S_IFMT == unix.S_IFREG {
		if err := chmodAt(dir, e.name, e.stamp, e.mode|0o400); err == nil {
			fd, err = dirfd.File(dir, e.name)
			_ = chmodAt(dir, e.name, e.stamp, e.mode)
			return fd, err
		}
	}
	if err != nil && !unsteadyError(err) && !errors.Is(err, unix.EMFILE) && !errors.Is(err, unix.ENFILE) {
		return -1, errors.Join(errRead, err)
	}
	return fd, err
}

// content puts size bytes from fd into the pack.
func (r *reader) content(fd int, size int64) (plumbing.Hash, error) {
	if size > wholeFile {
		return r.stream(fd, size)
	}
	if int64(len(r.buf)) <= size {
		r.buf = make([]byte, max(size+1, 1<<15))
	}
	n, err := io.ReadFull(fdReader(fd), r.buf[:size+1])
	switch {
	case err == nil || int64(n) != size:
		return plumbing.ZeroHash, errSizeChanged
	case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return plumbing.ZeroHash, errors.Join(errRead, err)
	}
	return r.pack.add(r.q, plumbing.BlobObject, r.buf[:n])
}

// stream reads a large file twice: for its name, and when the store lacks it, for
// its content.
func (r *reader) stream(fd int, size int64) (h plumbing.Hash, err error) {
	sum := sha1.New()
	fmt.Fprintf(sum, "blob %d\x00", size)
	n, err := io.CopyBuffer(struct{ io.Writer }{sum}, struct{ io.Reader }{io.LimitReader(fdReader(fd), size+1)}, make([]byte, 1<<17))
	if err != nil {
		return h, errors.Join(errRead, err)
	}
	if n != size {
		return h, errSizeChanged
	}
	sum.Sum(h[:0])
	if r.pack.known(h) {
		return h, nil
	}
	if _, err := unix.Seek(fd, 0, io.SeekStart); err != nil {
		return h, errors.Join(errRead, err)
	}
	return h, r.pack.addStream(r.q, h, size, io.LimitReader(fdReader(fd), size+1))
}
