package main

import (
	"encoding/binary"
	"math"
)

// entry is one request in the log.
type entry struct {
	// Span id of its traceparent; 0 without one.
	span uint64
	// When the kernel had its last byte, and when this program had read it.
	arrived, read int64
	// First and last write of a packet with tokens; 0 where there was none.
	first, last int64
	end         int64
	gapsFrom    uint32
	gaps        uint32
	tokens      uint32
	status      uint16
	outcome     outcome
}

// truthLog is what the server really did since its settings were made. Requests are in the order in which they were read.
type truthLog struct {
	entries []entry
	// Between writes of packets, nanoseconds; those of a request lie together.
	gaps []uint32
	// Of each write of tokens: how much later than it was due, nanoseconds.
	late []uint32
}

// What a run of ten seconds at the server's limit needs.
const (
	entriesHint = 1 << 19
	gapsHint    = 1 << 22
)

func newLog() *truthLog {
	return &truthLog{
		entries: make([]entry, 0, entriesHint),
		gaps:    make([]uint32, 0, gapsHint),
		late:    make([]uint32, 0, gapsHint),
	}
}

// clear starts a new log; requests that are under way are no longer in it.
func (l *truthLog) clear() {
	l.entries, l.gaps, l.late = l.entries[:0], l.gaps[:0], l.late[:0]
}

func saturated(nanoseconds int64) uint32 {
	return uint32(min(max(nanoseconds, 0), math.MaxUint32))
}

const entryBytes = 64

// encode gives the log as little-endian numbers: three counts as uint32 and four bytes of nothing, the entries of 64 bytes each, the gaps, the
// lateness. truth-server.ts reads it.
func (l *truthLog) encode() []byte {
	le := binary.LittleEndian
	out := make([]byte, 0, 16+len(l.entries)*entryBytes+4*(len(l.gaps)+len(l.late)))
	for _, n := range []int{len(l.entries), len(l.gaps), len(l.late), 0} {
		out = le.AppendUint32(out, uint32(n))
	}
	for i := range l.entries {
		e := &l.entries[i]
		out = le.AppendUint64(out, e.span)
		for _, at := range []int64{e.arrived, e.read, e.first, e.last, e.end} {
			out = le.AppendUint64(out, uint64(at))
		}
		out = le.AppendUint32(out, e.gapsFrom)
		out = le.AppendUint32(out, e.gaps)
		out = le.AppendUint32(out, e.tokens)
		out = le.AppendUint16(out, e.status)
		out = append(out, byte(e.outcome), 0)
	}
	for _, numbers := range [][]uint32{l.gaps, l.late} {
		for _, n := range numbers {
			out = le.AppendUint32(out, n)
		}
	}
	return out
}
