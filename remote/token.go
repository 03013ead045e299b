package remote

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxTokenFile bounds a token file in bytes, so that a wrong one is not read whole.
const maxTokenFile = 4096

// tokenBytes is how many random bytes are in a token that NewToken makes.
const tokenBytes = 32

func isToken(text string) bool { return madeOf(text, 32, maxTokenFile, "._~-") }

const tokenHint = "zcoder server token FILE makes a new one"

// ReadToken reads the token that server and client share from a file of the user's that
// nobody else may read. A line end after it does not belong to it. Errors have a hint
// and never hold what is in the file.
func ReadToken(path string) (string, error) {
	text, err := readTokenFile(path)
	if err != nil {
		return "", err
	}
	token := strings.TrimRight(text, "\r\n")
	if !isToken(token) {
		return "", hint(fmt.Errorf("read token %q: it has not the form of a token: at least 32 of A-Z a-z 0-9 . _ ~ -", path), tokenHint)
	}
	return token, nil
}

func readTokenFile(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ELOOP):
		return "", hint(fmt.Errorf("read token %q: it is a link", path), "name the file itself")
	case errors.Is(err, fs.ErrNotExist):
		return "", hint(fmt.Errorf("read token: %w", err), tokenHint)
	case err != nil:
		return "", fmt.Errorf("read token: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		err = checkTokenFile(path, info)
	}
	if err != nil {
		return "", err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxTokenFile))
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	return string(data), nil
}

func checkTokenFile(path string, info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return hint(fmt.Errorf("read token %q: it is not a regular file", path), tokenHint)
	case !ok || int64(st.Uid) != int64(os.Geteuid()):
		return hint(fmt.Errorf("read token %q: it belongs to another user", path), "use a file of your own; "+tokenHint)
	case info.Mode().Perm()&0o077 != 0:
		return hint(fmt.Errorf("read token %q: other users may reach it (mode %04o)", path, info.Mode().Perm()), "if it is a token, chmod 600 makes it yours alone; make a new one if others may have read it")
	case info.Size() >= maxTokenFile:
		return hint(fmt.Errorf("read token %q: it is too large for a token", path), tokenHint)
	}
	return nil
}

// NewToken makes a token and a file with it, which nobody else may read. It replaces no
// file.
func NewToken(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return hint(fmt.Errorf("make token %q: there is a file of this name", path), "name a new file, or remove this one if no client uses it any more")
	}
	if err != nil {
		return fmt.Errorf("make token: %w", err)
	}
	var random [tokenBytes]byte
	_, _ = rand.Read(random[:]) // never fails
	_, err = f.WriteString(base64.RawURLEncoding.EncodeToString(random[:]) + "\n")
	if err == nil {
		err = errors.Join(f.Chmod(0o600), f.Sync())
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(fmt.Errorf("make token: %w", err), os.Remove(path))
	}
	return nil
}
