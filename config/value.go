package config

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A Secret is a value that must not be seen: it prints, logs and marshals as a
// mask. Reveal gives it to the one place that needs it.
type Secret string

const mask = "(secret)"

// Reveal is the secret itself.
func (s Secret) Reveal() string { return string(s) }

// String is a mask, or empty when there is no secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return mask
}

// GoString is String, so that %#v tells no more.
func (s Secret) GoString() string { return strconv.Quote(s.String()) }

// LogValue is String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalJSON writes String.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// Headers are sent with every call. Their values are secrets as often as not:
// they print, log and marshal as masks, and in YAML a name that speaks of a
// secret is refused.
type Headers map[string]string

// masked writes headers as the environment spells them, without their values.
func (h Headers) masked() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(h)) {
		out = append(out, name+"="+mask)
	}
	return out
}

// String names the headers, and masks their values.
func (h Headers) String() string { return strings.Join(h.masked(), ",") }

// GoString is String, so that %#v tells no more.
func (h Headers) GoString() string { return strconv.Quote(h.String()) }

// LogValue is String.
func (h Headers) LogValue() slog.Value { return slog.StringValue(h.String()) }

// MarshalJSON writes String.
func (h Headers) MarshalJSON() ([]byte, error) { return json.Marshal(h.String()) }

// Bytes is a size. It is written as a whole number with B, KiB, MiB or GiB.
type Bytes int64

// Units of size.
const (
	KiB Bytes = 1 << 10
	MiB Bytes = 1 << 20
	GiB Bytes = 1 << 30
)

// String writes the size in the largest unit that needs no fraction.
func (b Bytes) String() string {
	switch {
	case b != 0 && b%GiB == 0:
		return fmt.Sprintf("%dGiB", b/GiB)
	case b != 0 && b%MiB == 0:
		return fmt.Sprintf("%dMiB", b/MiB)
	case b != 0 && b%KiB == 0:
		return fmt.Sprintf("%dKiB", b/KiB)
	}
	return fmt.Sprintf("%dB", int64(b))
}

const bytesForm = "a whole number with B, KiB, MiB or GiB, like 20KiB"

func parseBytes(s string) (Bytes, error) {
	unit := Bytes(1)
	num := s
	for suffix, u := range map[string]Bytes{"GiB": GiB, "MiB": MiB, "KiB": KiB, "B": 1} {
		if n, ok := strings.CutSuffix(s, suffix); ok && strings.TrimRight(n, "0123456789 ") == "" {
			num, unit = strings.TrimSpace(n), u
		}
	}
	n, err := strconv.ParseInt(num, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/int64(unit) {
		return 0, fmt.Errorf("want %s", bytesForm)
	}
	return Bytes(n) * unit, nil
}
