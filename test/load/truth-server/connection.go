package main

import (
	"math/rand"
	"net/http"
	"syscall"
	"unsafe"
)

type phase uint8

const (
	// Between requests.
	idle phase = iota
	// Waits for a slot.
	queued
	// An answer is due or on its way.
	answering
)

// connection is a client's socket and the one request that is answered on it.
type connection struct {
	fd      int
	in      []byte
	unsent  []byte // the socket's buffer is full
	closed  bool
	phase   phase
	request int // counts, so that a timer knows its own
	entry   int // index in the log
	log     int // generation of the log that the entry is in
	asked   asked
	fate    outcome
	due     int64
	sent    int // tokens
	headed  bool
	role    bool // the role chunk, where it comes apart, is still to come
	wrote   int64
	gaps    []uint32
}

// entryOf gives the connection's request in the log, or nil where a new log has begun since.
func (s *server) entryOf(c *connection) *entry {
	if c.log != s.logs || c.entry >= len(s.log.entries) {
		return nil
	}
	return &s.log.entries[c.entry]
}

// complete is called for a request that was read fully, at `read`.
func (s *server) complete(c *connection, r *request, arrived, read int64) {
	c.request++
	c.asked = parseAsked(r.path, r.body)
	if c.asked.tokens == 0 || c.asked.tokens > s.settings.Tokens {
		c.asked.tokens = s.settings.Tokens
	}
	s.requests++
	c.fate = s.settings.fate(s.requests)
	c.sent, c.headed, c.gaps = 0, false, c.gaps[:0]
	c.entry, c.log = len(s.log.entries), s.logs
	s.log.entries = append(s.log.entries, entry{span: r.span, arrived: arrived, read: read, status: http.StatusOK})
	switch c.fate {
	case internalError:
		s.refuse(c, http.StatusInternalServerError)
	case rateLimited:
		s.refuse(c, http.StatusTooManyRequests)
	default:
		if s.settings.Slots > 0 && s.active >= s.settings.Slots {
			c.phase = queued
			s.queue = append(s.queue, c)
			return
		}
		s.begin(c, read)
	}
}

func (s *server) refuse(c *connection, status int) {
	c.phase = answering
	s.active++
	if e := s.entryOf(c); e != nil {
		e.status = uint16(status)
	}
	s.write(c, refusal(status, s.settings.RetryAfter))
	s.finish(c, now(), c.fate)
}

// begin gives the request a slot at `at`.
func (s *server) begin(c *connection, at int64) {
	s.active++
	c.phase = answering
	c.due = at + jittered(s.settings.TTFT, s.settings.Jitter, s.random)
	c.role = s.settings.Role >= 0 && c.asked.streaming && !c.asked.legacy
	if c.role {
		s.arm(c, at+nanoseconds(s.settings.Role))
		return
	}
	s.arm(c, c.due)
}

func jittered(milliseconds, share float64, random *rand.Rand) int64 {
	if share == 0 {
		return nanoseconds(milliseconds)
	}
	return nanoseconds(milliseconds * (1 + share*(2*random.Float64()-1)))
}

func (s *server) arm(c *connection, at int64) {
	if at <= now() {
		s.ready = append(s.ready, timer{at, c, c.request})
		return
	}
	s.timers.push(timer{at, c, c.request})
}

// fire sends what is due.
func (s *server) fire(t timer) {
	c := t.c
	if c.closed || c.request != t.request || c.phase != answering {
		return
	}
	switch {
	case c.role:
		c.role = false
		c.headed = true
		s.write(c, append([]byte(streamHead), roleEvent...))
		s.arm(c, c.due)
	case !c.asked.streaming:
		s.fireWhole(c)
	default:
		s.firePacket(c)
	}
}

// fireWhole answers without streaming: when the last token would be due.
func (s *server) fireWhole(c *connection) {
	if c.sent == 0 {
		c.sent = c.asked.tokens
		packets := (c.asked.tokens - 1) / s.settings.TokensPerPacket
		if packets > 0 && s.settings.ITL > 0 {
			c.due += int64(packets) * nanoseconds(s.settings.ITL)
			s.arm(c, c.due)
			return
		}
	}
	at := now()
	s.late(at - c.due)
	s.write(c, plain(http.StatusOK, wholeAnswer(&c.asked), ""))
	if e := s.entryOf(c); e != nil {
		e.first, e.last, e.tokens = at, at, uint32(c.asked.tokens)
	}
	s.finish(c, at, answered)
}

// firePacket sends the next tokens of a stream, with what stands before the first and behind the last.
func (s *server) firePacket(c *connection) {
	half := c.asked.tokens / 2
	if c.sent >= half && (c.fate == cut || c.fate == errorEvent) {
		s.breakOff(c)
		return
	}
	n := min(s.settings.TokensPerPacket, c.asked.tokens-c.sent)
	isLast := c.sent+n >= c.asked.tokens
	out := s.scratch[:0]
	if !c.headed {
		c.headed = true
		out = append(out, streamHead...)
		if !c.asked.legacy {
			out = append(out, roleEvent...)
		}
	}
	out = appendTokens(out, &c.asked, n)
	if isLast {
		out = appendTail(out, &c.asked)
	}
	s.scratch = out
	at := now()
	s.late(at - c.due)
	s.write(c, out)
	if c.closed {
		return
	}
	if c.sent > 0 {
		c.gaps = append(c.gaps, saturated(at-c.wrote))
	} else if e := s.entryOf(c); e != nil {
		e.first = at
	}
	c.wrote = at
	c.sent += n
	if isLast {
		s.finish(c, at, c.fate)
		return
	}
	// By the schedule, not by when it was sent: lateness does not add up.
	c.due += jittered(s.settings.ITL, s.settings.Jitter, s.random)
	if c.fate == stalled && c.sent >= half && c.sent-n < half {
		c.due += nanoseconds(s.settings.Stall)
	}
	s.arm(c, c.due)
}

func (s *server) breakOff(c *connection) {
	if c.fate == errorEvent {
		out := append([]byte{}, failureEvent...)
		out = append(out, done...)
		s.write(c, append(out, streamEnd...))
		s.finish(c, now(), errorEvent)
		return
	}
	s.finish(c, now(), cut)
	s.close(c)
}

// finish logs the request and gives its slot to the next.
func (s *server) finish(c *connection, at int64, what outcome) {
	if e := s.entryOf(c); e != nil {
		e.end, e.outcome = at, what
		if c.sent > 0 && e.last == 0 {
			e.last, e.tokens = c.wrote, uint32(c.sent)
			e.gapsFrom, e.gaps = uint32(len(s.log.gaps)), uint32(len(c.gaps))
			s.log.gaps = append(s.log.gaps, c.gaps...)
		}
	}
	if c.phase == answering {
		s.active--
	}
	c.phase = idle
	c.request++
	if len(s.queue) > 0 && (s.settings.Slots == 0 || s.active < s.settings.Slots) {
		next := s.queue[0]
		s.queue = s.queue[1:]
		s.begin(next, at)
	}
	if len(c.in) > 0 && !c.closed {
		s.parse(c, at)
	}
}

// write sends now what the socket takes, and keeps the rest.
func (s *server) write(c *connection, bytes []byte) {
	if c.closed {
		return
	}
	if len(c.unsent) > 0 {
		c.unsent = append(c.unsent, bytes...)
		return
	}
	for len(bytes) > 0 {
		n, _, code := syscall.RawSyscall(syscall.SYS_WRITE, uintptr(c.fd), uintptr(unsafe.Pointer(&bytes[0])), uintptr(len(bytes)))
		switch code {
		case 0:
			bytes = bytes[n:]
		case syscall.EINTR:
		case syscall.EAGAIN:
			c.unsent = append(c.unsent, bytes...)
			s.watch(c, syscall.EPOLL_CTL_MOD, true)
			return
		default:
			s.close(c)
			return
		}
	}
}

// close ends the connection; a request that was under way was the client's to abandon.
func (s *server) close(c *connection) {
	if c.closed {
		return
	}
	c.closed = true
	switch c.phase {
	case queued:
		for i, other := range s.queue {
			if other == c {
				s.queue = append(s.queue[:i], s.queue[i+1:]...)
				break
			}
		}
		s.finish(c, now(), abandoned)
	case answering:
		s.finish(c, now(), abandoned)
	case idle:
	}
	s.connections[c.fd] = nil
	syscall.Close(c.fd)
}
