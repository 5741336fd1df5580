package bench

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Result is what one run measured.
type Result struct {
	Workload    Workload          `json:"workload"`
	Connections int               `json:"connections"`
	Depth       int               `json:"depth"`
	Keys        int               `json:"keys"`
	Operation   string            `json:"operation"` // what Operations counts
	Operations  uint64            `json:"operations"`
	Seconds     float64           `json:"seconds"` // measured time; handoff: from the first release of each round to its last
	Rate        float64           `json:"operations_per_second"`
	Latency     Latency           `json:"latency_us"`
	Order       *Order            `json:"order,omitempty"` // handoff only
	Errors      map[string]uint64 `json:"errors,omitempty"`
	Failure     string            `json:"failure,omitempty"` // why the first of the failed connections failed
	Partial     bool              `json:"partial"`           // interrupted
}

// Latency is of single requests (handoff: of hand-offs), in microseconds,
// with two significant digits.
type Latency struct {
	Samples int64   `json:"samples"`
	P50     float64 `json:"p50"`
	P90     float64 `json:"p90"`
	P99     float64 `json:"p99"`
	P999    float64 `json:"p99.9"`
	Max     float64 `json:"max"`
}

// Order holds the grants of handoff against the order of the acquires.
type Order struct {
	Rounds     int `json:"rounds"`
	Pairs      int `json:"pairs"`       // of waiters of one round
	Inverted   int `json:"inverted"`    // pairs of which the later one was granted first
	TwoHolders int `json:"two_holders"` // grants while another held the key, or whose token was not higher
}

// Broken reports whether the server broke a promise: first come first served,
// one holder, rising tokens.
func (o *Order) Broken() bool { return o != nil && (o.Inverted > 0 || o.TwoHolders > 0) }

// add counts the pairs of one round. grants lists the waiters, numbered in the
// order of their acquires, in the order of their grants.
func (o *Order) add(grants []int) {
	for i, earlier := range grants {
		for _, later := range grants[i+1:] {
			o.Pairs++
			if later < earlier {
				o.Inverted++
			}
		}
	}
}

var operations = map[Workload]string{
	Closed: "acquire+release", Pipelined: "acquire+release", Handoff: "hand-off", Held: "acquire",
}

// result adds the workers up.
func (r *run) result(elapsed time.Duration) *Result {
	c := &r.cfg
	res := &Result{
		Workload: c.Workload, Connections: c.Connections, Depth: c.Depth, Keys: c.Keys,
		Operation: operations[c.Workload], Seconds: elapsed.Seconds(), Errors: r.faults().byName(),
	}
	hist := newHistogram()
	for _, w := range r.workers {
		if w.err != nil && res.Failure == "" {
			res.Failure = w.err.Error()
		}
		res.Operations += w.measured
		hist.Merge(w.hist)
	}
	if elapsed > 0 {
		res.Rate = float64(res.Operations) / elapsed.Seconds()
	}
	res.Latency = latencyOf(hist)
	return res
}

func (r *run) faults() *tally {
	var sum tally
	for _, w := range r.workers {
		sum.merge(&w.faults)
	}
	return &sum
}

func latencyOf(h *hdrhistogram.Histogram) Latency {
	if h.TotalCount() == 0 {
		return Latency{}
	}
	at := func(percentile float64) float64 { return float64(h.ValueAtPercentile(percentile)) / 1e3 }
	return Latency{
		Samples: h.TotalCount(),
		P50:     at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: float64(h.Max()) / 1e3,
	}
}
