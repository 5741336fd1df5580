package mark

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
)

// The file is text, so that an operator can read it and a stranger is told what it is.
const (
	header  = "# Holdfast's token mark: every fencing token taken so far lies below it. Do not edit or delete.\n"
	version = 1
)

func encode(mark uint64) []byte {
	text := fmt.Appendf(nil, "%sversion %d\nmark %d\n", header, version, mark)
	return fmt.Appendf(text, "crc32 %08x\n", crc32.ChecksumIEEE(text))
}

// decode accepts nothing but what encode writes, to the byte.
func decode(text []byte) (uint64, error) {
	var v int
	var mark uint64
	var sum uint32
	n, err := fmt.Sscanf(string(text), header+"version %d\nmark %d\ncrc32 %x\n", &v, &mark, &sum)
	switch {
	case n >= 1 && v != version:
		return 0, fmt.Errorf("is of version %d, and this program knows version %d", v, version)
	case err != nil:
		return 0, fmt.Errorf("is damaged or cut short (%d bytes)", len(text))
	case string(encode(mark)) != string(text):
		return 0, errors.New("is damaged: its checksum does not fit")
	}
	return mark, nil
}

// readMark returns what the file keeps, 0 where there is none. A damaged file is an error and never a lower mark:
// only a person can decide to go on without it.
func readMark(path string) (uint64, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read token mark: %w", err)
	}
	mark, err := decode(text)
	if err != nil {
		return 0, fmt.Errorf("token mark %s: %w; restore the file, or delete it if the clock was not set back "+
			"since this node last ran: tokens then start at the clock", path, err)
	}
	return mark, nil
}
