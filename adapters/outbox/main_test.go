package outbox_test

import (
	"testing"

	"mimikit/core/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }
