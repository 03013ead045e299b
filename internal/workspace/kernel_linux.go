package workspace

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// kernelFS are file systems whose regular files are answers of the kernel: they may
// be endless, block, or act when read.
var kernelFS = []int64{
	unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.TRACEFS_MAGIC, unix.DEBUGFS_MAGIC, unix.SECURITYFS_MAGIC,
	unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC, unix.BPF_FS_MAGIC, unix.PSTOREFS_MAGIC, unix.EFIVARFS_MAGIC,
	unix.SELINUX_MAGIC, unix.BINFMTFS_MAGIC, unix.DEVPTS_SUPER_MAGIC,
}

// ofKernel reports whether f belongs to one of them.
func ofKernel(f *os.File) bool {
	conn, err := f.SyscallConn()
	if err != nil {
		return false
	}
	var st unix.Statfs_t
	found := false
	_ = conn.Control(func(fd uintptr) {
		found = unix.Fstatfs(int(fd), &st) == nil && slices.Contains(kernelFS, int64(st.Type))
	})
	return found
}
