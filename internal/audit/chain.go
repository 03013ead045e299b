package audit

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
)

// Break is a place where the log is not what was written.
type Break struct {
	Record int64 // the first number that is missing or wrong
	Reason string
}

// follower goes along the lines of a log and checks that each follows the last.
type follower struct {
	last link
	// blind says that last is not known yet: the first record is taken as it is.
	blind  bool
	count  int64 // records that were read
	first  int64 // number of the first of them
	breaks []Break
	// untold is the first break that no later record tells of.
	untold *Break
	// odd is a complete line that is no record; the next decides what it was.
	odd fragment
	// rest is an unfinished last line.
	rest fragment

	scratch []byte
}

// fragment is a piece of the log that is not the record that was due.
type fragment struct {
	size  int64
	sum   [sha256.Size]byte
	crash bool // it can be the beginning of the record that was due
	// framed says that it has the form of a record, with this link and kind.
	framed bool
	link   link
	own    string
}

func (f fragment) digest() string { return hex.EncodeToString(f.sum[:]) }

// read follows the bytes from begin, where a line begins, to end.
func (f *follower) read(r io.ReaderAt, begin, end int64) error {
	in := bufio.NewReaderSize(io.NewSectionReader(r, begin, end-begin), maxLine)
	for {
		line, err := in.ReadSlice('\n')
		switch {
		case err == nil:
			f.line(line[:len(line)-1])
		case errors.Is(err, bufio.ErrBufferFull):
			whole, err := f.long(in, line)
			if err != nil {
				return err
			}
			if !whole {
				return nil
			}
		case errors.Is(err, io.EOF):
			f.end(line)
			return nil
		default:
			return fmt.Errorf("read log: %w", bare(err))
		}
	}
}

// long passes over a line that is too long for a record. It reports whether the
// line has an end.
func (f *follower) long(in *bufio.Reader, start []byte) (bool, error) {
	var sum hash.Hash = sha256.New()
	sum.Write(start)
	odd := fragment{size: int64(len(start))}
	for {
		line, err := in.ReadSlice('\n')
		sum.Write(bytes.TrimSuffix(line, []byte{'\n'}))
		odd.size += int64(len(line))
		switch {
		case err == nil:
			odd.size--
			copy(odd.sum[:], sum.Sum(nil))
			f.settleOdd()
			f.odd = odd
			return true, nil
		case errors.Is(err, io.EOF):
			copy(odd.sum[:], sum.Sum(nil))
			f.settleOdd()
			f.rest = odd
			f.noEnd()
			return false, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return false, fmt.Errorf("read log: %w", bare(err))
		}
	}
}

// line takes the next complete line. One that is not the record that was due waits
// for the next line, which may tell that a crash cut it off.
func (f *follower) line(line []byte) {
	l, payload, ok := parseLine(line)
	fits := ok && f.fits(l, payload)
	ok = fits || ok && l.n <= maxForeign
	own := ""
	if ok {
		own = ownKind(payload)
	}
	if ok && f.blind {
		f.see(l, own == kindRecovered && closes(payload, f.odd))
		if own == kindBroken {
			f.toldHere(l, payload)
		}
		return
	}
	if f.odd.size > 0 {
		if fits && own == kindRecovered && closes(payload, f.odd) {
			f.odd = fragment{}
			f.advance(l)
			return
		}
		f.settleOdd()
		fits = ok && f.fits(l, payload)
	}
	if !fits {
		f.odd = fragment{size: max(1, int64(len(line))), sum: sha256.Sum256(line), crash: f.canBegin(line), framed: ok, link: l, own: own}
		return
	}
	if own == kindBroken {
		f.toldHere(l, payload)
	}
	f.advance(l)
}

// toldHere takes a record that tells of a break. It is a break itself when what it
// tells of is not seen.
func (f *follower) toldHere(l link, payload []byte) {
	if f.untold == nil {
		f.breakAt(l.n, "a break was recorded here: "+detail(payload))
	}
	f.untold = nil
}

// maxForeign bounds the number that is taken from a record that does not follow:
// there must be room for those that come after.
const maxForeign = 1e15

// fits reports whether a record is the one that follows the last.
func (f *follower) fits(l link, payload []byte) bool {
	if cap(f.scratch) == 0 {
		f.scratch = make([]byte, 0, maxLine+len(l.hash))
	}
	return l.n == f.last.n+1 && chained(f.scratch, f.last, payload) == l.hash
}

func (f *follower) advance(l link) {
	if f.count++; f.count == 1 {
		f.first = l.n
	}
	f.last = l
}

// see takes the first record of a log that is not read from its beginning.
func (f *follower) see(l link, closes bool) {
	if !closes {
		f.settleOdd()
	}
	f.blind, f.odd = false, fragment{}
	f.advance(l)
	for i := range f.breaks {
		f.breaks[i].Record = l.n
	}
}

// settleOdd gives up hope that the line before was cut off by a crash. If it has not
// even the form of a record, the chain goes on from its digest: nothing restarts it.
func (f *follower) settleOdd() {
	odd := f.odd
	f.odd = fragment{}
	switch {
	case odd.size == 0:
	case !odd.framed:
		f.breakAt(f.last.n+1, "a line is no record")
		hex.Encode(f.last.hash[:], odd.sum[:])
	default:
		reason := "its hash does not match"
		if odd.link.n > f.last.n+1 {
			reason = fmt.Sprintf("record %d follows record %d", odd.link.n, f.last.n)
		}
		f.breakAt(f.last.n+1, reason)
		if odd.own == kindBroken {
			f.untold = nil
		}
		f.advance(odd.link)
	}
}

// end takes what follows the last line end.
func (f *follower) end(rest []byte) {
	if len(rest) == 0 {
		f.settleOdd()
		return
	}
	if l, payload, ok := parseLine(rest); ok && f.odd.size == 0 && !f.blind && f.fits(l, payload) {
		// Nothing is missing but the line end.
		f.rest = fragment{size: int64(len(rest)), crash: true, framed: true}
		f.advance(l)
		return
	}
	f.settleOdd()
	f.rest = fragment{size: int64(len(rest)), sum: sha256.Sum256(rest), crash: f.canBegin(rest)}
	if !f.rest.crash {
		f.noEnd()
	}
}

func (f *follower) noEnd() {
	f.breakAt(f.last.n+1, "the log ends with something that is no record")
	hex.Encode(f.last.hash[:], f.rest.sum[:])
}

// ownKind returns the kind of a record if it is one of the log's own.
func ownKind(payload []byte) string {
	const field = `"kind":"`
	i := bytes.Index(payload, []byte(field))
	if i < 0 {
		return ""
	}
	for _, kind := range [...]string{kindBroken, kindRecovered} {
		if strings.HasPrefix(string(payload[i+len(field):min(len(payload), i+len(field)+maxWord)]), kind+`"`) {
			return kind
		}
	}
	return ""
}

// closes reports whether a recovered record tells of a fragment.
func closes(payload []byte, odd fragment) bool {
	var e Entry
	return odd.crash && json.Unmarshal(payload, &e) == nil && e.Torn == odd.size && e.TornSum == odd.digest()
}

func detail(payload []byte) string {
	var e Entry
	_ = json.Unmarshal(payload, &e) // its hash is right, so it is what we wrote
	return e.Detail
}

// canBegin reports whether a piece can be the beginning of the record that is due.
func (f *follower) canBegin(piece []byte) bool {
	for i, c := range piece[:min(len(piece), recBegin)] {
		switch {
		case i < len(frameHash):
			if c != frameHash[i] {
				return false
			}
		case i < hashEnd:
			if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
				return false
			}
		case c != frameRec[i-hashEnd]:
			return false
		}
	}
	if len(piece) <= recBegin || f.blind {
		return true
	}
	want := fmt.Sprintf("%s%d%s", recHead, f.last.n+1, recTime)
	begin := piece[recBegin:]
	return string(begin[:min(len(begin), len(want))]) == want[:min(len(begin), len(want))]
}

// maxBreaks bounds the breaks that are kept.
const maxBreaks = 100

func (f *follower) breakAt(record int64, reason string) {
	b := Break{Record: record, Reason: reason}
	if len(f.breaks) < maxBreaks {
		f.breaks = append(f.breaks, b)
	}
	if f.untold == nil {
		f.untold = &b
	}
}

func (f *follower) firstBreak() *Break {
	if len(f.breaks) == 0 {
		return nil
	}
	return &f.breaks[0]
}

// lost notes that the log once went on to a later record, and goes on from there.
func (f *follower) lost(later link, reason string) {
	f.breakAt(f.last.n+1, reason)
	if later.n > f.last.n {
		f.last = later
	}
}

// checkHead compares the log with its head. All before the end has been followed.
func (f *follower) checkHead(r io.ReaderAt, size int64, h head, err error) {
	switch {
	case err != nil:
		f.breakAt(f.last.n+1, err.Error())
	case !h.exists() && size > 0:
		f.breakAt(f.last.n+1, "the head file is missing")
	case h.Count == 0:
	case h.Size > size && h.Count <= f.last.n:
		f.breakAt(h.Count, "the log is cut: it is shorter than its head says")
	case h.Count > f.last.n:
		f.lost(h.link(), fmt.Sprintf("the log is cut: it ends with record %d, and record %d was written", f.last.n, h.Count))
	default:
		line, ok := lineBefore(r, h.Size)
		if l, _, whole := parseLine(line); !ok || !whole || l != h.link() {
			f.breakAt(h.Count, "it is not the record that the head names")
		}
	}
}

// lineBefore returns the line that ends at an offset, without its end.
func lineBefore(r io.ReaderAt, end int64) ([]byte, bool) {
	begin := max(0, end-maxLine)
	buf := make([]byte, end-begin)
	if n, _ := r.ReadAt(buf, begin); n < len(buf) || n == 0 || buf[n-1] != '\n' {
		return nil, false
	}
	buf = buf[:len(buf)-1]
	return buf[bytes.LastIndexByte(buf, '\n')+1:], true
}

// readEnd follows the end of a log from the first line that begins at or after an
// offset.
func readEnd(r io.ReaderAt, size, from int64) (*follower, error) {
	f := &follower{last: genesis()}
	if from <= 0 {
		return f, f.read(r, 0, size)
	}
	buf := make([]byte, min(maxLine, size-from+1))
	n, err := r.ReadAt(buf, from-1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read log: %w", bare(err))
	}
	i := bytes.IndexByte(buf[:n], '\n')
	if i < 0 {
		return f, f.read(r, 0, size)
	}
	f.blind = true
	return f, f.read(r, from+int64(i), size)
}
