package child

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// processesWithParent lists the processes whose parent is ppid, in no
// particular order; none if /proc can't be read.
func processesWithParent(ppid int) []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	var pids []int
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err == nil && parentOf(stat) == ppid {
			pids = append(pids, pid)
		}
	}
	return pids
}

// parentOf reads the parent's pid from the text of a stat file, 0 if it is
// not one. The command's name before it may hold blanks and parentheses.
func parentOf(stat []byte) int {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	ppid, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return 0
	}
	return ppid
}
