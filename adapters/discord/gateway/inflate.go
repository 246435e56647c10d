package gateway

import (
	"compress/zlib"
	"encoding/json"
	"fmt"
	"io"
)

// An inflater reads payloads from a zlib-stream: one compression context for the
// whole connection, flushed after each payload.
type inflater struct {
	source io.Reader // of packed bytes
	left   int64     // what one payload may still unpack to
	zr     io.ReadCloser
	dec    *json.Decoder
}

func newInflater(source io.Reader) *inflater { return &inflater{source: source} }

// next gives the next payload. It blocks as its source does.
func (i *inflater) next() ([]byte, error) {
	if i.zr == nil {
		zr, err := zlib.NewReader(i.source)
		if err != nil {
			return nil, fmt.Errorf("open zlib-stream: %w", err)
		}
		i.zr = zr
		i.dec = json.NewDecoder(bounded{i})
	}
	i.left = maxFrame
	var raw json.RawMessage
	if err := i.dec.Decode(&raw); err != nil {
		return nil, fmt.Errorf("read from zlib-stream: %w", err)
	}
	return raw, nil
}

// bounded keeps a few packed bytes from becoming gigabytes.
type bounded struct{ i *inflater }

func (b bounded) Read(p []byte) (int, error) {
	if b.i.left <= 0 {
		return 0, fmt.Errorf("a payload unpacks to more than %d bytes", maxFrame)
	}
	if int64(len(p)) > b.i.left {
		p = p[:b.i.left]
	}
	n, err := b.i.zr.Read(p)
	b.i.left -= int64(n)
	return n, err
}
