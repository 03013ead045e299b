package audit

import "golang.org/x/sys/unix"

func mount(dir, options string) error {
	return unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options)
}

func unmount(dir string) error { return unix.Unmount(dir, unix.MNT_DETACH) }

// remountReadOnly binds the directory over itself, so that files which are open for
// writing do not matter.
func remountReadOnly(dir string) error {
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	return unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
}
