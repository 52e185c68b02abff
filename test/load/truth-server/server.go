package main

import (
	"bytes"
	"encoding/binary"
	"math/rand"
	"net"
	"runtime"
	"syscall"
	"unsafe"
)

const (
	sysEpollPwait2 = 441 // on every architecture
	prSetTimerSlk  = 29  // PR_SET_TIMERSLACK
	soTimestampNs  = 35  // SO_TIMESTAMPNS: the kernel says when it had the bytes
	backlog        = 4096
	events         = 1024
	idleWait       = int64(1e9)
	readBytes      = 1 << 16
	// A request line and head of a megabyte is no request.
	requestLimit = 8 << 20
)

type server struct {
	port        int
	listener    int
	epoll       int
	connections []*connection // by descriptor
	timers      timers
	ready       []timer // due at once: one packet each in a turn
	spare       []timer
	queue       []*connection
	active      int
	requests    int
	settings    settings
	random      *rand.Rand
	log         *truthLog
	logs        int
	scratch     []byte
}

func listen(address string) (*server, error) {
	at, err := net.ResolveTCPAddr("tcp4", address)
	if err != nil {
		return nil, err
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	local := &syscall.SockaddrInet4{Port: at.Port}
	copy(local.Addr[:], at.IP.To4())
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return nil, err
	}
	if err := syscall.Bind(fd, local); err != nil {
		return nil, err
	}
	if err := syscall.Listen(fd, backlog); err != nil {
		return nil, err
	}
	bound, err := syscall.Getsockname(fd)
	if err != nil {
		return nil, err
	}
	epoll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	s := &server{listener: fd, epoll: epoll, log: newLog()}
	if inet, ok := bound.(*syscall.SockaddrInet4); ok {
		s.port = inet.Port
	}
	s.configure(defaults)
	interest := syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)}
	return s, syscall.EpollCtl(epoll, syscall.EPOLL_CTL_ADD, fd, &interest)
}

// configure starts a new log under new settings.
func (s *server) configure(asked settings) {
	s.settings = asked
	s.random = rand.New(rand.NewSource(asked.Seed))
	s.requests = 0
	s.logs++
	s.log.clear()
	runtime.GC()
}

// serve runs until an error.
func (s *server) serve() error {
	// A timer may fire this many nanoseconds late; 0 would be the default of 50 µs.
	syscall.RawSyscall(syscall.SYS_PRCTL, prSetTimerSlk, 1, 0)
	polled := make([]syscall.EpollEvent, events)
	buffer, control := make([]byte, readBytes), make([]byte, 64)
	for {
		n, err := s.wait(polled)
		if err != nil {
			return err
		}
		for _, event := range polled[:n] {
			if int(event.Fd) == s.listener {
				s.accept()
				continue
			}
			c := s.connections[event.Fd]
			if c == nil {
				continue
			}
			if event.Events&syscall.EPOLLOUT != 0 {
				s.flush(c)
			}
			if event.Events&^uint32(syscall.EPOLLOUT) != 0 && !c.closed {
				s.read(c, buffer, control)
			}
		}
		s.fireDue()
	}
}

// wait polls until the earliest timer is due.
func (s *server) wait(polled []syscall.EpollEvent) (int, error) {
	pause := idleWait
	if len(s.ready) > 0 {
		pause = 0
	} else if len(s.timers) > 0 {
		pause = max(0, s.timers[0].at-now())
	}
	limit := syscall.NsecToTimespec(pause)
	n, _, code := syscall.Syscall6(sysEpollPwait2, uintptr(s.epoll), uintptr(unsafe.Pointer(&polled[0])), uintptr(len(polled)), uintptr(unsafe.Pointer(&limit)), 0, 0)
	switch code {
	case 0:
		return int(n), nil
	case syscall.EINTR:
		return 0, nil
	}
	return 0, code
}

func (s *server) fireDue() {
	at := now()
	for len(s.timers) > 0 && s.timers[0].at <= at {
		s.fire(s.timers.pop())
	}
	if len(s.ready) == 0 {
		return
	}
	due := s.ready
	s.ready, s.spare = s.spare[:0], due
	for _, t := range due {
		if !t.c.closed && len(t.c.unsent) > 0 {
			s.ready = append(s.ready, t) // the client is behind
			continue
		}
		s.fire(t)
	}
}

func (s *server) late(nanoseconds int64) { s.log.late = append(s.log.late, saturated(nanoseconds)) }

func (s *server) accept() {
	for {
		fd, _, err := syscall.Accept4(s.listener, syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC)
		if err != nil {
			return
		}
		// Without these a connection works, only less exactly.
		_ = syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
		_ = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, soTimestampNs, 1)
		for len(s.connections) <= fd {
			s.connections = append(s.connections, nil)
		}
		c := &connection{fd: fd}
		s.connections[fd] = c
		s.watch(c, syscall.EPOLL_CTL_ADD, false)
	}
}

func (s *server) watch(c *connection, operation int, writable bool) {
	interest := syscall.EpollEvent{Events: syscall.EPOLLIN | syscall.EPOLLRDHUP, Fd: int32(c.fd)}
	if writable {
		interest.Events |= syscall.EPOLLOUT
	}
	if err := syscall.EpollCtl(s.epoll, operation, c.fd, &interest); err != nil {
		s.close(c)
	}
}

func (s *server) flush(c *connection) {
	unsent := c.unsent
	c.unsent = nil
	s.write(c, unsent)
	if len(c.unsent) == 0 && !c.closed {
		s.watch(c, syscall.EPOLL_CTL_MOD, false)
	}
}

func (s *server) read(c *connection, buffer, control []byte) {
	n, controls, _, _, err := syscall.Recvmsg(c.fd, buffer, control, 0)
	if err == syscall.EAGAIN || err == syscall.EINTR {
		return
	}
	if err != nil || n == 0 || len(c.in)+n > requestLimit {
		s.close(c)
		return
	}
	c.in = append(c.in, buffer[:n]...)
	if c.phase == idle {
		s.parse(c, arrivalOf(control[:controls]))
	}
}

// arrivalOf is when the kernel had the bytes, as it says in a control message; now where it says nothing.
func arrivalOf(control []byte) int64 {
	const head = syscall.SizeofCmsghdr
	if len(control) < head+16 || binary.LittleEndian.Uint32(control[12:]) != soTimestampNs {
		return now()
	}
	seconds := int64(binary.LittleEndian.Uint64(control[head:]))
	return fromWall(seconds*1e9 + int64(binary.LittleEndian.Uint64(control[head+8:])))
}

// parse takes complete requests out of what has been read, until one has to be answered first.
func (s *server) parse(c *connection, arrived int64) {
	for c.phase == idle && len(c.in) > 0 && !c.closed {
		r, n, err := parseRequest(c.in)
		switch err {
		case nil:
		case errIncomplete:
			if r.wantsBody && bytes.HasSuffix(c.in, headEnd) {
				s.write(c, []byte("HTTP/1.1 100 Continue\r\n\r\n"))
			}
			return
		default:
			s.close(c)
			return
		}
		// The answer may come back here for the next one: what was read is taken out first.
		path, body := bytes.Clone(r.path), bytes.Clone(r.body)
		r.path, r.body = path, body
		c.in = append(c.in[:0], c.in[n:]...)
		s.dispatch(c, &r, arrived)
	}
}

func (s *server) dispatch(c *connection, r *request, arrived int64) {
	path, _, _ := bytes.Cut(r.path, []byte("?"))
	switch string(path) {
	case "/v1/chat/completions", "/v1/completions":
		read := now()
		s.complete(c, r, min(arrived, read), read)
	case "/v1/models":
		s.write(c, plain(200, modelList, ""))
	case "/health", "/":
		s.write(c, plain(200, "{}", ""))
	case "/truth/settings":
		asked, err := parseSettings(r.body)
		if err != nil {
			s.write(c, plain(400, "{}", ""))
			return
		}
		s.configure(asked)
		s.write(c, plain(200, "{}", ""))
	case "/truth/log":
		s.write(c, plain(200, string(s.log.encode()), ""))
	default:
		s.write(c, plain(404, `{"error":{"message":"no such path","type":"not_found","code":404}}`, ""))
	}
}
