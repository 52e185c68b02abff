package main

// timer is a packet of an answer that is due.
type timer struct {
	at int64
	c  *connection
	// Of the request that it belongs to: a connection may have another by then.
	request int
}

// timers are a binary heap, the earliest first. container/heap calls through an interface: a third of the cost of a packet.
type timers []timer

func (h *timers) push(t timer) {
	*h = append(*h, t)
	all := *h
	i := len(all) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if all[parent].at <= all[i].at {
			return
		}
		all[parent], all[i] = all[i], all[parent]
		i = parent
	}
}

func (h *timers) pop() timer {
	all := *h
	first := all[0]
	n := len(all) - 1
	all[0] = all[n]
	all[n] = timer{}
	all = all[:n]
	*h = all
	for i := 0; ; {
		child := 2*i + 1
		if child >= n {
			return first
		}
		if child+1 < n && all[child+1].at < all[child].at {
			child++
		}
		if all[i].at <= all[child].at {
			return first
		}
		all[i], all[child] = all[child], all[i]
		i = child
	}
}
