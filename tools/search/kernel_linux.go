package search

import (
	"slices"

	"golang.org/x/sys/unix"
)

// ofKernel reports whether fd belongs to a file system whose regular files are
// answers of the kernel: they may be endless, block, or act when read.
func ofKernel(fd int) bool {
	var st unix.Statfs_t
	return unix.Fstatfs(fd, &st) == nil && slices.Contains([]int64{
		unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.TRACEFS_MAGIC, unix.DEBUGFS_MAGIC, unix.SECURITYFS_MAGIC,
		unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC, unix.BPF_FS_MAGIC, unix.PSTOREFS_MAGIC, unix.EFIVARFS_MAGIC,
		unix.SELINUX_MAGIC, unix.BINFMTFS_MAGIC, unix.DEVPTS_SUPER_MAGIC,
	}, int64(st.Type))
}
