package workspace

import (
	"slices"

	"golang.org/x/sys/unix"
)

// kernelFS are file systems whose regular files are answers of the kernel.
var kernelFS = []int64{
	unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.TRACEFS_MAGIC, unix.DEBUGFS_MAGIC, unix.SECURITYFS_MAGIC,
	unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC, unix.BPF_FS_MAGIC, unix.PSTOREFS_MAGIC, unix.EFIVARFS_MAGIC,
	unix.SELINUX_MAGIC, unix.BINFMTFS_MAGIC, unix.DEVPTS_SUPER_MAGIC,
}

// OfKernel reports whether the open file fd belongs to a file system made up by the
// kernel: its files may be endless, block, or act when read.
func OfKernel(fd int) bool {
	var st unix.Statfs_t
	return unix.Fstatfs(fd, &st) == nil && slices.Contains(kernelFS, int64(st.Type))
}
