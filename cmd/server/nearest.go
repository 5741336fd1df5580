package main

// nearest returns the candidate that the fewest changed, added or removed letters make of name; of several, the first.
func nearest(name string, candidates []string) string {
	best, least := "", -1
	for _, c := range candidates {
		if d := distance(name, c); least < 0 || d < least {
			best, least = c, d
		}
	}
	return best
}

// distance is the edit distance of a and b, by rows: row[j] is that of a[:i] and b[:j].
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := diagonal
			if a[i] != b[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
