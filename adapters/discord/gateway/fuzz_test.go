package gateway

import "testing"

// No payload makes the client panic, and what is read from one is in its bounds.
func FuzzFrames(f *testing.F) {
	for _, s := range []string{
		`{"op":10,"d":{"heartbeat_interval":41250}}`, `{"op":0,"t":"READY","s":1,"d":{"session_id":"x","resume_gateway_url":"wss://y"}}`,
		`{"op":9,"d":true}`, `{"op":9,"d": false}`, `{"op":1,"d":null}`, `null`, `[]`, `{"op":10,"d":{"heartbeat_interval":1e300}}`, `{"s":-9223372036854775808}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		fr, err := decodeFrame(b)
		if err != nil {
			return
		}
		if d, err := fr.hello(); err == nil && d <= 0 {
			t.Errorf("heartbeat interval %v", d)
		}
		if id, _, err := fr.ready(); err == nil && id == "" {
			t.Error("a session without an id")
		}
		fr.resumable()
	})
}
