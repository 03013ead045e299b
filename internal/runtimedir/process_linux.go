package runtimedir

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

// startTime returns a text that differs between two processes that had the same
// id: the boot and the ticks since it. It is "" when no such process lives.
func startTime(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The command name stands in parentheses and may hold anything. The start time
	// is field 22, the twentieth after it.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return ""
	}
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(boot)) + "/" + fields[19]
}
