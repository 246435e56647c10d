// Package memory keeps what people asked to be remembered beyond a conversation,
// and finds what of it helps with what they say now.
//
// It promises walls, which are decided here from verified ids and never by a
// prompt:
//
//   - a note of the scope conversation is used in that conversation only;
//   - a note of the scope user is used where that person speaks, in the same
//     workspace; one that was made in a direct message, in their direct messages
//     only;
//   - a note of the scope workspace is used anywhere in it, and can be made in a
//     place only, so that nothing said in a direct message reaches a place.
//
// A note is part of the commit of the turn that made it. People can see what is
// remembered about them, and have it forgotten.
package memory

import (
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/channel"
	"mimikit/core/chat"
)

// The scopes of a note.
const (
	Conversation = "conversation"
	User         = "user"
	Workspace    = "workspace"
)

// The bounds of a memory.
const (
	MaxContent = 2000 // characters of a note
	maxNotes   = 500  // of one subject made in one partition; beyond that the oldest is forgotten
)

// ErrUnknown says that there is no such note for whoever asked.
var ErrUnknown = errors.New("there is no such note")

// A Note is something that is remembered.
type Note struct {
	ID      string            `json:"id"` // the same content for the same subject has the same id
	Scope   string            `json:"scope"`
	Content string            `json:"content"`
	Author  chat.Author       `json:"author"` // on whose behalf it was made
	Origin  chat.Conversation `json:"origin"` // where
	At      time.Time         `json:"at"`

	partition int
}

// Options of a Store. Client and Keys are needed.
type Options struct {
	Client redis.UniversalClient
	Keys   channel.Keys
	Logger *slog.Logger // default: none
}

// A Store keeps notes in Redis. It is safe for concurrent use.
type Store struct{ o Options }

// New makes a Store. It does not connect.
func New(o Options) *Store {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return &Store{o}
}

//go:embed lua/remember.lua
var rememberSource string

const extensionName = "remember"

// Extensions are what a channel.Node must be given, so that the calls of
// [Store.Remember] can be committed.
func Extensions() []channel.Extension {
	return []channel.Extension{{Name: extensionName, Source: rememberSource}}
}

// subject is whose note it is: what its key is named by.
func (n *Note) subject() (string, error) {
	switch n.Scope {
	case Conversation:
		return "c/" + n.Origin.Key(), nil
	case User:
		if n.Author.ID == "" {
			return "", errors.New("a note of the scope user needs a person")
		}
		return "u/" + n.Origin.UserKey(n.Author.ID), nil
	case Workspace:
		if n.Origin.Direct() {
			return "", errors.New("what was said in a direct message cannot be remembered for the workspace; use the scope user")
		}
		return "w/" + n.Origin.WorkspaceKey(), nil
	}
	return "", fmt.Errorf("scope %q: allowed are %s, %s and %s", n.Scope, Conversation, User, Workspace)
}

func (s *Store) notesKey(p int, subject string) string { return s.o.Keys.In(p, "n:"+subject) }

// whereKey names the partitions in which notes of a subject may lie. They lie
// where they were made, since a commit reaches its own partition only.
func (s *Store) whereKey(subject string) string { return s.o.Keys.Prefix + ":notes:" + subject }

// Remember spells the call that keeps a note, for the commit of a turn of
// n.Origin. The same content again is the same note, made anew. It fails, with an
// error for whoever asked, on what cannot be remembered.
func (s *Store) Remember(ctx context.Context, n Note) (Note, channel.Call, error) {
	n.Content = strings.TrimSpace(strings.ToValidUTF8(n.Content, "�"))
	subject, err := n.subject()
	switch {
	case err != nil:
		return Note{}, channel.Call{}, err
	case n.Content == "":
		return Note{}, channel.Call{}, errors.New("there is nothing to remember")
	case len([]rune(n.Content)) > MaxContent:
		return Note{}, channel.Call{}, fmt.Errorf("the note has %d characters; at most %d are allowed", len([]rune(n.Content)), MaxContent)
	}
	sum := sha256.Sum256([]byte(subject + "\x00" + strings.Join(words(n.Content), " ")))
	n.ID = "n" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:12]
	n.At, n.partition = n.At.UTC(), s.o.Keys.Partition(n.Origin.Key())
	data, err := json.Marshal(n)
	if err != nil {
		return Note{}, channel.Call{}, fmt.Errorf("encode note %s: %w", n.ID, err)
	}
	// Before the commit, so that no note is ever where nobody looks; that there may
	// be none where it says is harmless.
	if err := s.o.Client.SAdd(ctx, s.whereKey(subject), n.partition).Err(); err != nil {
		return Note{}, channel.Call{}, fmt.Errorf("note where notes of %s are: %w", subject, err)
	}
	return n, channel.Call{
		Extension: extensionName, Keys: []string{s.notesKey(n.partition, subject)},
		Args: []string{n.ID, string(data), strconv.FormatInt(n.At.UnixMilli(), 10), strconv.Itoa(maxNotes)},
	}, nil
}

// Usable gives every note that may be used in a conversation when these people
// speak there, the newest first.
func (s *Store) Usable(ctx context.Context, c chat.Conversation, speakers []chat.Author) ([]Note, error) {
	subjects := []string{"c/" + c.Key()}
	if c.WorkspaceKey() != "" {
		subjects = append(subjects, "w/"+c.WorkspaceKey())
	}
	for _, a := range speakers {
		if a.ID != "" && !a.Bot {
			subjects = append(subjects, "u/"+c.UserKey(a.ID))
		}
	}
	slices.Sort(subjects)
	all, err := s.read(ctx, slices.Compact(subjects))
	if err != nil {
		return nil, fmt.Errorf("read what is remembered for %s: %w", c, err)
	}
	return slices.DeleteFunc(all, func(n Note) bool { return n.Scope == User && n.Origin.Direct() && !c.Direct() }), nil
}

// Of gives what a person can see of the memory: their own notes, and those of the
// conversation that they ask in and of its workspace.
func (s *Store) Of(ctx context.Context, c chat.Conversation, who chat.Author) ([]Note, error) {
	return s.Usable(ctx, c, []chat.Author{who})
}

// Forget removes a note that who can see in c. Notes of others are for operators
// to remove.
func (s *Store) Forget(ctx context.Context, c chat.Conversation, who chat.Author, id string) (Note, error) {
	all, err := s.Of(ctx, c, who)
	if err != nil {
		return Note{}, err
	}
	var found []Note
	for _, n := range all {
		if strings.HasPrefix(n.ID, id) && id != "" {
			found = append(found, n)
		}
	}
	switch {
	case len(found) == 0:
		return Note{}, fmt.Errorf("forget %q: %w", id, ErrUnknown)
	case len(found) > 1:
		return Note{}, fmt.Errorf("forget %q: %d notes begin like this; give more of the id", id, len(found))
	case found[0].Author.ID != who.ID && who.Role < chat.RoleOperator:
		return Note{}, fmt.Errorf("forget %s: %s asked for it; only they and operators may have it forgotten", found[0].ID, cmp.Or(found[0].Author.Name, found[0].Author.ID))
	}
	n := found[0]
	if err := s.remove(ctx, n); err != nil {
		return Note{}, fmt.Errorf("forget %s: %w", n.ID, err)
	}
	return n, nil
}

// remove takes a note out of every partition that it lies in: the same, made in
// two conversations, is in two.
func (s *Store) remove(ctx context.Context, n Note) error {
	subject, err := n.subject()
	if err != nil {
		return err
	}
	where, err := s.o.Client.SMembers(ctx, s.whereKey(subject)).Result()
	if err != nil {
		return err
	}
	pipe := s.o.Client.Pipeline()
	for _, word := range append(where, strconv.Itoa(n.partition)) {
		if p, err := strconv.Atoi(word); err == nil {
			pipe.HDel(ctx, s.notesKey(p, subject), n.ID)
		}
	}
	_, err = pipe.Exec(ctx)
	return err
}

// read gives the notes of subjects, the newest first.
func (s *Store) read(ctx context.Context, subjects []string) ([]Note, error) {
	pipe := s.o.Client.Pipeline()
	where := make([]*redis.StringSliceCmd, len(subjects))
	for i, subject := range subjects {
		where[i] = pipe.SMembers(ctx, s.whereKey(subject))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	type place struct {
		partition int
		values    *redis.MapStringStringCmd
	}
	var places []place
	pipe = s.o.Client.Pipeline()
	for i, subject := range subjects {
		for _, word := range where[i].Val() {
			p, err := strconv.Atoi(word)
			if err != nil || p < 0 || p >= s.o.Keys.Partitions {
				continue
			}
			places = append(places, place{p, pipe.HGetAll(ctx, s.notesKey(p, subject))})
		}
	}
	if len(places) == 0 {
		return nil, nil
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	newest := map[string]Note{}
	for _, at := range places {
		for id, value := range at.values.Val() {
			var n Note
			_, body, _ := strings.Cut(value, " ")
			if err := json.Unmarshal([]byte(body), &n); err != nil {
				s.o.Logger.Warn("note_unreadable", "note", id, "error", err)
				continue
			}
			n.partition = at.partition
			if have, twice := newest[n.ID]; !twice || have.At.Before(n.At) {
				newest[n.ID] = n
			}
		}
	}
	out := make([]Note, 0, len(newest))
	for _, n := range newest {
		out = append(out, n)
	}
	slices.SortFunc(out, func(a, b Note) int { return cmp.Or(b.At.Compare(a.At), strings.Compare(a.ID, b.ID)) })
	return out, nil
}
