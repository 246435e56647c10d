package store_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/store"
)

func TestKeysExpireInTheProcessToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open(t.Context(), store.Options{Mode: store.Memory})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Minute) // virtual: for the last goroutine of a closed client
		}()
		if err := s.Client.Set(t.Context(), "k", "v", 5*time.Second).Err(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Second)
		if err := s.Client.Get(t.Context(), "k").Err(); err != nil {
			t.Errorf("after 4 of 5 s: %v", err)
		}
		time.Sleep(2 * time.Second)
		if err := s.Client.Get(t.Context(), "k").Err(); !errors.Is(err, redis.Nil) {
			t.Errorf("after 6 of 5 s: %v, want it gone", err)
		}
	})
}
