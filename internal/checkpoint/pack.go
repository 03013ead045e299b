package checkpoint

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"crypto/rand"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"

	"zcoder/internal/ownfile"
)

// errSizeChanged means that a file did not hold the bytes that were announced.
var errSizeChanged = errors.New("it changed while it was read")

// packWriter writes one packfile: level 1 of deflate, no deltas. Objects that the
// store has are not written again. It may be used from several goroutines. It is
// invisible until commit; a kill leaves a temporary file that the next pruning
// removes.
type packWriter struct {
	s    *store
	temp string
	f    *os.File // nil until the first object

	mu      sync.Mutex
	w       *bufio.Writer
	at      int64
	objects []packed
	seen    map[plumbing.Hash]bool
	wrote   bool // there was something to commit
}

type packed struct {
	hash plumbing.Hash
	at   int64
	crc  uint32
}

const packHead = "PACK\x00\x00\x00\x02"

func newPackWriter(s *store) *packWriter {
	return &packWriter{s: s, seen: map[plumbing.Hash]bool{}}
}

// squeezer compresses objects for one goroutine.
type squeezer struct {
	zw  *zlib.Writer
	buf bytes.Buffer
}

func (q *squeezer) reset(w io.Writer) (*zlib.Writer, error) {
	if q.zw == nil {
		var err error
		q.zw, err = zlib.NewWriterLevel(w, zlib.BestSpeed)
		return q.zw, err
	}
	q.zw.Reset(w)
	return q.zw, nil
}

// squeezer returns one that putSqueezer took back, or a new one: they are large.
func (s *store) squeezer() *squeezer {
	if q, ok := s.squeezers.Get().(*squeezer); ok {
		return q
	}
	return &squeezer{}
}

func (s *store) putSqueezer(q *squeezer) { s.squeezers.Put(q) }

// hashOf returns the name that git gives an object.
func hashOf(kind string, content []byte) (h plumbing.Hash) {
	sum := sha1.New()
	fmt.Fprintf(sum, "%s %d\x00", kind, len(content))
	sum.Write(content)
	sum.Sum(h[:0])
	return h
}

// known reports whether an object need not be written.
func (p *packWriter) known(h plumbing.Hash) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen[h] || p.s.has(h)
}

// add writes an object unless it is there and returns its name.
func (p *packWriter) add(q *squeezer, kind plumbing.ObjectType, content []byte) (plumbing.Hash, error) {
	h := hashOf(kind.String(), content)
	if p.known(h) {
		return h, nil
	}
	q.buf.Reset()
	q.buf.Write(entryHead(kind, int64(len(content))))
	zw, err := q.reset(&q.buf)
	if err == nil {
		_, err = zw.Write(content)
	}
	if err == nil {
		err = zw.Close()
	}
	if err != nil {
		return h, fmt.Errorf("compress an object: %w", err)
	}
	return h, p.append(h, q.buf.Bytes())
}

// append writes a compressed entry.
func (p *packWriter) append(h plumbing.Hash, raw []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen[h] {
		return nil
	}
	if err := p.begin(); err != nil {
		return err
	}
	if _, err := p.w.Write(raw); err != nil {
		return fmt.Errorf("write pack: %w", err)
	}
	p.note(h, int64(len(raw)), crc32.ChecksumIEEE(raw))
	return nil
}

func (p *packWriter) note(h plumbing.Hash, size int64, crc uint32) {
	p.objects = append(p.objects, packed{h, p.at, crc})
	p.seen[h] = true
	p.at += size
}

// addStream writes a large blob, of which the caller knows name and size, in pieces.
// When what comes from r is something else, it takes all back.
func (p *packWriter) addStream(q *squeezer, h plumbing.Hash, size int64, r io.Reader) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen[h] {
		return nil
	}
	if err := p.begin(); err != nil {
		return err
	}
	out := &counter{w: p.w}
	_, err := out.Write(entryHead(plumbing.BlobObject, size))
	sum := sha1.New()
	fmt.Fprintf(sum, "blob %d\x00", size)
	var zw *zlib.Writer
	if err == nil {
		zw, err = q.reset(out)
	}
	var n int64
	if err == nil {
		n, err = io.CopyBuffer(io.MultiWriter(zw, sum), r, make([]byte, 1<<17))
	}
	if err == nil {
		err = zw.Close()
	}
	if err == nil && (n != size || plumbing.Hash(sum.Sum(nil)) != h) {
		err = errSizeChanged
	}
	if err != nil {
		return errors.Join(err, p.takeBack())
	}
	p.note(h, out.n, out.crc)
	return nil
}

func (p *packWriter) takeBack() error {
	err := p.w.Flush()
	if err == nil {
		err = p.f.Truncate(p.at)
	}
	if err == nil {
		_, err = p.f.Seek(p.at, io.SeekStart)
	}
	return err
}

type counter struct {
	w   io.Writer
	n   int64
	crc uint32
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	c.crc = crc32.Update(c.crc, crc32.IEEETable, b[:n])
	return n, err
}

func entryHead(kind plumbing.ObjectType, size int64) []byte {
	b := []byte{byte(kind)<<4 | byte(size&15)}
	for size >>= 4; size > 0; size >>= 7 {
		b[len(b)-1] |= 0x80
		b = append(b, byte(size&0x7f))
	}
	return b
}

func (p *packWriter) begin() error {
	if p.f != nil {
		return nil
	}
	p.temp = filepath.Join(p.s.packDir(), "tmp-"+randomName())
	f, err := os.OpenFile(p.temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("make pack: %w", err)
	}
	p.f, p.w = f, bufio.NewWriterSize(f, 1<<16)
	n, err := p.w.WriteString(packHead + "\x00\x00\x00\x00")
	p.at = int64(n)
	return err
}

func randomName() string {
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// settle writes what there is to the disk, so that commit takes little time.
func (p *packWriter) settle() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.f == nil {
		return nil
	}
	if err := errors.Join(p.w.Flush(), p.f.Sync()); err != nil {
		return fmt.Errorf("write pack: %w", err)
	}
	return nil
}

// commit makes the pack and its index visible; their content is on the disk then.
// Without objects it does nothing.
func (p *packWriter) commit() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.f == nil {
		return nil
	}
	p.wrote = true
	sum, err := p.finish()
	if err == nil {
		err = p.f.Sync()
	}
	err = errors.Join(err, p.f.Close())
	p.f = nil
	if err == nil {
		err = p.publish(sum)
	}
	if err != nil {
		os.Remove(p.temp)
		return fmt.Errorf("write pack: %w", err)
	}
	return nil
}

// finish writes the number of objects into the head, which was not known before, and
// the checksum over all to the end.
func (p *packWriter) finish() (sum [sha1.Size]byte, err error) {
	if err := p.w.Flush(); err != nil {
		return sum, err
	}
	if _, err := p.f.WriteAt(binary.BigEndian.AppendUint32(nil, uint32(len(p.objects))), int64(len(packHead))); err != nil {
		return sum, err
	}
	h := sha1.New()
	if _, err := io.CopyBuffer(struct{ io.Writer }{h}, io.NewSectionReader(p.f, 0, p.at), make([]byte, 1<<17)); err != nil {
		return sum, err
	}
	h.Sum(sum[:0])
	_, err = p.f.WriteAt(sum[:], p.at)
	return sum, err
}

// publish renames the pack first and its index last: readers find packs by index.
func (p *packWriter) publish(sum [sha1.Size]byte) error {
	index := &idxfile.Writer{}
	if err := index.OnHeader(uint32(len(p.objects))); err != nil {
		return err
	}
	for _, o := range p.objects {
		index.Add(o.hash, uint64(o.at), o.crc)
	}
	if err := index.OnFooter(sum); err != nil {
		return err
	}
	table, err := index.Index()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if _, err := idxfile.NewEncoder(&b).Encode(table); err != nil {
		return err
	}
	name := "pack-" + hex.EncodeToString(sum[:])
	if err := os.Rename(p.temp, filepath.Join(p.s.packDir(), name+".pack")); err != nil {
		return err
	}
	if err := ownfile.Replace(filepath.Join(p.s.packDir(), name+".idx"), b.Bytes(), 0o600); err != nil {
		return err
	}
	p.s.adopt(&pack{name: name, index: table, size: p.at + sha1.Size})
	return nil
}

// abort drops what was not committed.
func (p *packWriter) abort() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.f != nil {
		p.f.Close()
		os.Remove(p.temp)
		p.f = nil
	}
}
