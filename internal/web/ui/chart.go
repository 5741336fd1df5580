package ui

import (
	"math"
	"strconv"
	"strings"
	"time"

	"holdfast/internal/node"
)

// chart is a picture of the last ten minutes, with what it says in words.
type chart struct {
	ID      string
	Title   string
	Top     string // what the upper edge stands for
	Summary string
	Lines   []line
	Marks   []mark
	Empty   bool // there are no samples yet
}

// line is one series. The first is drawn solid, the second dashed, so that it
// does not take colour to tell them apart.
type line struct {
	Name string
	Now  string
	Path string // of an SVG path
	Dash bool
}

// mark is an instant at which the role changed.
type mark struct {
	X     string
	Label string
}

const (
	chartSeconds = 600
	chartHeight  = 100
)

// series is what a chart draws.
type series struct {
	name  string
	value func(*node.Sample) float64
}

// chartOf draws series over samples, the newest at the right edge. write puts
// a value into words.
func chartOf(id, title string, samples []node.Sample, write func(float64) string, all ...series) chart {
	c := chart{ID: id, Title: title, Empty: len(samples) == 0, Marks: marksOf(samples)}
	if c.Empty {
		c.Summary = title + ": nothing measured yet."
		return c
	}
	highest := make([]float64, len(all))
	top := 0.0
	for i, s := range all {
		for j := range samples {
			highest[i] = max(highest[i], s.value(&samples[j]))
		}
		top = max(top, highest[i])
	}
	top = roundUp(top)
	c.Top = write(top)
	var words []string
	for i, s := range all {
		now := write(s.value(&samples[len(samples)-1]))
		c.Lines = append(c.Lines, line{Name: s.name, Now: now, Path: pathOf(samples, s.value, top), Dash: i > 0})
		words = append(words, s.name+" "+now+" now, at most "+write(highest[i]))
	}
	c.Summary = title + " in the last " + span(time.Duration(len(samples))*time.Second) + ": " + strings.Join(words, "; ") + "."
	return c
}

// roundUp returns 1, 2 or 5 times a power of ten that is not below v.
func roundUp(v float64) float64 {
	if v <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, step := range []float64{1, 2, 5} {
		if v <= step*power {
			return step * power
		}
	}
	return 10 * power
}

// pathOf draws one series, a point a second.
func pathOf(samples []node.Sample, value func(*node.Sample) float64, top float64) string {
	b := make([]byte, 0, 8*len(samples))
	command := byte('M')
	for i := range samples {
		x := chartSeconds - (len(samples) - 1 - i)
		y := chartHeight - int(math.Round(value(&samples[i])/top*chartHeight))
		b = append(b, command)
		b = strconv.AppendInt(b, int64(x), 10)
		b = append(b, ' ')
		b = strconv.AppendInt(b, int64(y), 10)
		command = 'L'
	}
	return string(b)
}

func marksOf(samples []node.Sample) (all []mark) {
	for i := 1; i < len(samples); i++ {
		if samples[i].Role != samples[i-1].Role {
			x := chartSeconds - (len(samples) - 1 - i)
			all = append(all, mark{strconv.Itoa(x), samples[i].Role.String() + " at " + momentOf(samples[i].At).Text})
		}
	}
	return all
}

func countText(v float64) string { return number(int(v)) }
func rateText(v float64) string  { return number(int(v)) + "/s" }

func secondsText(v float64) string { return span(time.Duration(v * float64(time.Second))) }

// charts are those of the overview.
func charts(samples []node.Sample) []chart {
	count := func(name string, value func(*node.Sample) float64) series { return series{name, value} }
	seconds := func(name string, value func(*node.Sample) time.Duration) series {
		return series{name, func(s *node.Sample) float64 { return value(s).Seconds() }}
	}
	return []chart{
		chartOf("rates", "Grants and releases", samples, rateText,
			count("grants", func(s *node.Sample) float64 { return float64(s.Grants) }),
			count("releases", func(s *node.Sample) float64 { return float64(s.Releases) })),
		chartOf("standing", "Held and waiting", samples, countText,
			count("held", func(s *node.Sample) float64 { return float64(s.Held) }),
			count("waiting", func(s *node.Sample) float64 { return float64(s.Waiting) })),
		chartOf("waits", "Wait for a grant", samples, secondsText,
			seconds("p50", func(s *node.Sample) time.Duration { return s.WaitP50 }),
			seconds("p99", func(s *node.Sample) time.Duration { return s.WaitP99 })),
		chartOf("lag", "Replication lag", samples, secondsText,
			seconds("furthest peer", func(s *node.Sample) time.Duration { return s.Lag })),
	}
}
