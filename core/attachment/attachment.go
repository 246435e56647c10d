// Package attachment remembers the files that people sent in a conversation, so
// that a task can have them later, on any node: a message with a file is answered
// in seconds, what is done with the file may begin hours after.
//
// Only where a file can be fetched is kept, not its content. It promises:
//
//   - What was added is listed by every node until it expires or its message is
//     removed, whatever crashes in between; adding it again changes nothing.
//   - A conversation's files are told to nobody but that conversation.
//   - It is bounded: the newest [Most] files of a conversation are kept, and a
//     conversation in which nothing is sent for [Kept] is forgotten.
package attachment

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/channel"
	"mimikit/core/chat"
)

// Bounds of what is kept.
const (
	Most = 100 // files of a conversation
	Kept = 60 * 24 * time.Hour
)

// A File is one that somebody sent.
type File struct {
	Message    string          `json:"message"` // with which it came
	Attachment chat.Attachment `json:"attachment"`
	Author     chat.Author     `json:"author"`
	At         time.Time       `json:"at"`
}

// A Store keeps files' whereabouts in Redis. It is safe for concurrent use.
type Store struct {
	client redis.UniversalClient
	keys   channel.Keys
	log    *slog.Logger
}

// New makes a Store. It does not connect. log may be nil.
func New(client redis.UniversalClient, keys channel.Keys, log *slog.Logger) *Store {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Store{client, keys, log}
}

var (
	//go:embed add.lua
	addSource string
	addScript = redis.NewScript(addSource)
)

func (s *Store) key(conversation string) string {
	return s.keys.In(s.keys.Partition(conversation), "files:"+conversation)
}

// Add remembers the files of a message, those that can be fetched.
func (s *Store) Add(ctx context.Context, c chat.Conversation, files []File) error {
	var args []any
	for _, f := range files {
		if f.Attachment.URL == "" {
			continue
		}
		f.Attachment.Text = "" // it is in the input
		data, err := json.Marshal(f)
		if err != nil {
			return fmt.Errorf("remember file %q of %s: %w", f.Attachment.Name, c.Key(), err)
		}
		args = append(args, f.At.UnixMilli(), f.Message+"/"+f.Attachment.ID, data)
	}
	if len(args) == 0 {
		return nil
	}
	args = append([]any{Most, Kept.Milliseconds()}, args...)
	key := s.key(c.Key())
	if err := addScript.Run(ctx, s.client, []string{key, key + ":at"}, args...).Err(); err != nil {
		return fmt.Errorf("remember %d files of %s: %w", len(args)/3, c.Key(), err)
	}
	return nil
}

// Forget forgets the files of a message that was removed.
func (s *Store) Forget(ctx context.Context, c chat.Conversation, message string) error {
	files, err := s.List(ctx, c)
	if err != nil {
		return err
	}
	var ids []string
	for _, f := range files {
		if f.Message == message {
			ids = append(ids, f.Message+"/"+f.Attachment.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	key := s.key(c.Key())
	_, err = s.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.HDel(ctx, key, ids...)
		p.ZRem(ctx, key+":at", anys(ids)...)
		return nil
	})
	if err != nil {
		return fmt.Errorf("forget the files of message %s of %s: %w", message, c.Key(), err)
	}
	return nil
}

func anys(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}

// List gives a conversation's files, the oldest first. A damaged one is left out
// and logged.
func (s *Store) List(ctx context.Context, c chat.Conversation) ([]File, error) {
	got, err := s.client.HGetAll(ctx, s.key(c.Key())).Result()
	if err != nil {
		return nil, fmt.Errorf("list the files of %s: %w", c.Key(), err)
	}
	var files []File
	for id, data := range got {
		var f File
		if err := json.Unmarshal([]byte(data), &f); err != nil {
			s.log.Error("file_damaged", "conversation", c.Key(), "id", id, "error", err)
			continue
		}
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b File) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Message, b.Message), cmp.Compare(a.Attachment.ID, b.Attachment.ID))
	})
	return files, nil
}
