package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"mimikit/core/chat"
)

// The times of posting in a chaos run. The platform may let a post take effect
// as long as chaosLate after it was asked, which lies before chaosLookup.
const (
	chaosPost   = time.Second
	chaosLookup = 3 * time.Second
	chaosLate   = 1500 * time.Millisecond
)

// A chaosPlatform is the chat platform of a chaos run: it records every post,
// loses answers, stalls and refuses, and can be asked what it has.
type chaosPlatform struct {
	server *http.Server
	url    string

	mu    sync.Mutex
	rand  *rand.Rand
	calm  bool
	posts []posted
	said  map[string]spoken // :: input id of an accepted message -> which it was
	lost  int64             // commits that nodes found lost
	count map[string]int    // :: what the platform did -> how often
}

// A posted is one post that took effect.
type posted struct {
	Reply        string         `json:"reply"`
	Part         int            `json:"part"`
	Conversation string         `json:"conversation"`
	InputIDs     []string       `json:"inputIds"`
	Kind         chat.ReplyKind `json:"kind"`
	Node         string         `json:"node"`
}

// A spoken is one accepted message.
type spoken struct{ conv, i int }

func newChaosPlatform(seed uint64) (*chaosPlatform, error) {
	p := &chaosPlatform{rand: rand.New(rand.NewPCG(seed, 7)), said: map[string]spoken{}, count: map[string]int{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /post", p.post)
	mux.HandleFunc("GET /lookup", p.lookup)
	mux.HandleFunc("POST /lost", p.loss)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the platform: %w", err)
	}
	p.url = "http://" + l.Addr().String()
	p.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = p.server.Serve(l) }() // ends with close
	return p, nil
}

func (p *chaosPlatform) close() { _ = p.server.Close() }

// fate decides what happens to a post.
func (p *chaosPlatform) fate() (what string, delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x, d := p.rand.Float64(), time.Duration(p.rand.Int64N(int64(30*time.Millisecond)))
	late := time.Duration(p.rand.Int64N(int64(chaosLate)))
	switch {
	case p.calm:
		return "posted", 0
	case x < 0.03:
		return "answer lost", d
	case x < 0.05:
		return "late", late
	case x < 0.08:
		return "refused", d
	case x < 0.09:
		return "dropped", d
	}
	return "posted", d
}

func (p *chaosPlatform) post(w http.ResponseWriter, r *http.Request) {
	var post posted
	if err := json.NewDecoder(r.Body).Decode(&post); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	what, delay := p.fate()
	// The caller may give up meanwhile; what was asked takes effect all the same.
	_ = pauseFor(context.Background(), delay)
	p.mu.Lock()
	p.count[what]++
	if what != "refused" && what != "dropped" {
		p.posts = append(p.posts, post)
	}
	id := strconv.Itoa(len(p.posts))
	p.mu.Unlock()
	switch what {
	case "refused":
		http.Error(w, "too many", http.StatusTooManyRequests)
	case "answer lost", "dropped":
		panic(http.ErrAbortHandler)
	default:
		_, _ = fmt.Fprint(w, id) // a caller that is gone looks it up
	}
}

func (p *chaosPlatform) lookup(w http.ResponseWriter, r *http.Request) {
	reply, part := r.URL.Query().Get("reply"), r.URL.Query().Get("part")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count["looked up"]++
	for i, post := range p.posts {
		if post.Reply == reply && strconv.Itoa(post.Part) == part {
			_, _ = fmt.Fprint(w, i+1)
			return
		}
	}
}

func (p *chaosPlatform) loss(_ http.ResponseWriter, r *http.Request) {
	n, err := strconv.ParseInt(r.URL.Query().Get("commits"), 10, 64)
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost += n
}

func (p *chaosPlatform) accepted(conv, i int, id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said[id] = spoken{conv, i}
}

func (p *chaosPlatform) calmDown() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calm = true
}

// unanswered counts the accepted messages that no post answers.
func (p *chaosPlatform) unanswered() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	answered := map[string]bool{}
	for _, post := range p.posts {
		for _, id := range post.InputIDs {
			answered[id] = true
		}
	}
	n := 0
	for id := range p.said {
		if !answered[id] {
			n++
		}
	}
	return n
}
