package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// Opcodes of the gateway.
const (
	opDispatch       = 0
	opHeartbeat      = 1
	opIdentify       = 2
	opResume         = 6
	opReconnect      = 7
	opInvalidSession = 9
	opHello          = 10
	opHeartbeatAck   = 11
)

// maxFrame bounds one payload, unpacked. The largest known are those of guilds
// with very many members, a few MiB.
const maxFrame = 32 << 20

// A frame is one payload.
type frame struct {
	Op   int             `json:"op"`
	Data json.RawMessage `json:"d"`
	Seq  int64           `json:"s"`
	Type string          `json:"t"`
	at   time.Time
}

func decodeFrame(b []byte) (frame, error) {
	var f frame
	if err := json.Unmarshal(b, &f); err != nil {
		return frame{}, fmt.Errorf("decode a frame of %d bytes: %w", len(b), err)
	}
	return f, nil
}

// hello gives the heartbeat interval of a Hello.
func (f frame) hello() (time.Duration, error) {
	var d struct {
		Interval float64 `json:"heartbeat_interval"` // ms
	}
	if err := json.Unmarshal(f.Data, &d); err != nil {
		return 0, fmt.Errorf("decode hello: %w", err)
	}
	// A bound on both sides keeps a wrong number from becoming a flood, or a
	// connection that is never found dead.
	if d.Interval < 100 || d.Interval > 600_000 {
		return 0, fmt.Errorf("decode hello: a heartbeat interval of %g ms is not between 100 and 600000", d.Interval)
	}
	return time.Duration(d.Interval * float64(time.Millisecond)), nil
}

// ready gives what resuming needs of a READY.
func (f frame) ready() (sessionID, resumeURL string, err error) {
	var d struct {
		SessionID string `json:"session_id"`
		ResumeURL string `json:"resume_gateway_url"`
	}
	if err := json.Unmarshal(f.Data, &d); err != nil {
		return "", "", fmt.Errorf("decode ready: %w", err)
	}
	if d.SessionID == "" {
		return "", "", fmt.Errorf("decode ready: it names no session")
	}
	return d.SessionID, d.ResumeURL, nil
}

// resumable reads an Invalid Session; what is not true is false.
func (f frame) resumable() bool { return bytes.Equal(bytes.TrimSpace(f.Data), []byte("true")) }

type outgoing struct {
	Op   int `json:"op"`
	Data any `json:"d"`
}

func heartbeat(seq int64) outgoing {
	if seq == 0 {
		return outgoing{opHeartbeat, nil}
	}
	return outgoing{opHeartbeat, seq}
}

func (o Options) identify() outgoing {
	type properties struct {
		OS      string `json:"os"`
		Browser string `json:"browser"`
		Device  string `json:"device"`
	}
	return outgoing{opIdentify, struct {
		Token      string     `json:"token"`
		Intents    int        `json:"intents"`
		Shard      [2]int     `json:"shard"`
		Properties properties `json:"properties"`
	}{o.Token, o.Intents, [2]int{o.Shard.ID, o.Shard.Of}, properties{"linux", "mimikit", "mimikit"}}}
}

func (o Options) resume(s State) outgoing {
	return outgoing{opResume, struct {
		Token     string `json:"token"`
		SessionID string `json:"session_id"`
		Seq       int64  `json:"seq"`
	}{o.Token, s.SessionID, s.Seq}}
}
