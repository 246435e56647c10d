package channel

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"
)

// Keys spells every Redis key of a deployment. All keys of one partition share
// the hash tag {prefix:p}, so that a script may touch them together on Redis
// Cluster. Nothing outside these functions builds a key of a partition.
type Keys struct {
	Prefix     string // first part of every key, so that several programs can share one Redis
	Partitions int
}

// Partition is where a conversation lives: the FNV-1a hash of its key over the
// number of partitions, which is fixed for a deployment.
func (k Keys) Partition(conversation string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(conversation)) // never fails
	return int(h.Sum32() % uint32(k.Partitions))
}

// Meta holds what is fixed for the deployment. Hash: partitions, schema.
func (k Keys) Meta() string { return k.Prefix + ":meta" }

// Nodes is the register of live nodes. Sorted set: node id → Redis time (ms) of
// its last heartbeat.
func (k Keys) Nodes() string { return k.Prefix + ":nodes" }

// In is a key of another package in partition p, whose name begins with that
// package's own word: the names of these functions are taken.
func (k Keys) In(p int, name string) string { return k.of(p, name) }

func (k Keys) of(p int, name string) string {
	return "{" + k.Prefix + ":" + strconv.Itoa(p) + "}:" + name
}

// Lease says who owns a partition. Hash: token, node, until (Redis ms), seq of
// the owner's last script, suspect (Redis ms until which posts are looked up).
func (k Keys) Lease(p int) string { return k.of(p, "lease") }

// Epoch counts the owners a partition has had. It has no TTL, so a token is
// never given twice.
func (k Keys) Epoch(p int) string { return k.of(p, "epoch") }

// Commits is the partition's commit number: every script that writes here
// raises it, so a Redis that forgot writes is found out by a lower number.
func (k Keys) Commits(p int) string { return k.of(p, "commits") }

// Stream is the stream behind one partition of a channel.
func (k Keys) Stream(p int, n Name) string { return k.of(p, "s:"+string(n)) }

// Dead is the partition's dead letters. Stream.
func (k Keys) Dead(p int) string { return k.file(p, dead) }

// file is a stream that no loop reads.
func (k Keys) file(p int, n Name) string { return k.of(p, string(n)) }

// Seen remembers the messages of one hour of platform time. Hash: 16-byte
// digest of the dedupe key → 1, or the answer given to a commit id.
func (k Keys) Seen(p int, hour int64) string {
	return k.of(p, "seen:"+strconv.FormatInt(hour, 10))
}

// Stops holds the stop numbers. Hash: conversation → number.
func (k Keys) Stops(p int) string { return k.of(p, "stops") }

// Waiting counts the inputs not yet digested. Hash: conversation → count.
func (k Keys) Waiting(p int) string { return k.of(p, "waiting") }

// Active tells when a conversation last changed. Sorted set: conversation →
// Redis time (ms).
func (k Keys) Active(p int) string { return k.of(p, "active") }

// Table is one of the partition's hashes that steps may write.
func (k Keys) Table(p int, t Table) string { return k.of(p, string(t)) }

// History is a conversation's lines. List of JSON, oldest first.
func (k Keys) History(conversation string) string {
	return k.of(k.Partition(conversation), "h:"+conversation)
}

// Summary stands for the lines that were folded out of a conversation's history.
// Hash. history.SummaryKey spells it too; a conversation's key has no question
// mark, so no history has this key.
func (k Keys) Summary(conversation string) string { return k.History(conversation) + "?summary" }

// Blob is a text too long for a stream.
func (k Keys) Blob(conversation, id string) string {
	return k.of(k.Partition(conversation), "b:"+id)
}

// Feed is the capped stream a terminal follows.
func (k Keys) Feed(conversation string) string {
	return k.of(k.Partition(conversation), "f:"+conversation)
}

// idTime reads the time out of a stream id, which is "ms-seq".
func idTime(id string) time.Time {
	ms, _, _ := strings.Cut(id, "-")
	n, err := strconv.ParseInt(ms, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(n).UTC()
}

// idLess orders stream ids as Redis does.
func idLess(a, b string) bool {
	am, as := splitID(a)
	bm, bs := splitID(b)
	if am != bm {
		return am < bm
	}
	return as < bs
}

func splitID(id string) (ms, seq uint64) {
	m, s, _ := strings.Cut(id, "-")
	ms, _ = strconv.ParseUint(m, 10, 64)
	seq, _ = strconv.ParseUint(s, 10, 64)
	return ms, seq
}

// A DeadID names a dead letter: its partition and its id there.
type DeadID struct {
	Partition int
	ID        string
}

// String spells the id as `mimikit dead list` shows it.
func (d DeadID) String() string { return fmt.Sprintf("%d/%s", d.Partition, d.ID) }

// ParseDeadID reads what String wrote.
func ParseDeadID(s string) (DeadID, error) {
	p, id, ok := strings.Cut(s, "/")
	n, err := strconv.Atoi(p)
	if !ok || err != nil || n < 0 || !strings.Contains(id, "-") {
		return DeadID{}, fmt.Errorf("dead letter id %q: want partition/stream-id, for example 3/1763692800000-0", s)
	}
	return DeadID{Partition: n, ID: id}, nil
}
