package fields

// DidYouMean returns the end of an error about an unknown name: the most
// similar of the known names, or "" if none is similar.
func DidYouMean(name string, there []string) string {
	best, least := "", len(name)/3+1 // more changes than every third letter make another word
	for _, other := range there {
		if d := distance(name, other); d < least {
			best, least = other, d
		}
	}
	if best == "" {
		return ""
	}
	return " (did you mean " + best + "?)"
}

// distance returns how many letters one must insert, leave out, replace or
// exchange with their neighbour to turn a into b.
func distance(a, b string) int {
	var before, last, row []int // of the letters of b, for more and more letters of a
	for j := range len(b) + 1 {
		row = append(row, j)
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replaced := last[j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			row[j] = min(replaced, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
