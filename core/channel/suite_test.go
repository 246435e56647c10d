package channel

import (
	"testing"

	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

// suite is every case of this package that a deployment can tell apart by the
// kind of Redis it runs on. On miniredis and one server each is a test of its own.
var suite = map[string]func(t *testing.T, s *store.Store){
	"EveryInputIsAnsweredOnceInOrder":         everyInputIsAnsweredOnceInOrder,
	"SameMessageIsHeardOnce":                  sameMessageIsHeardOnce,
	"LostAndLateCallsDoubleNothing":           lostAndLateCallsDoubleNothing,
	"ReplacedOwnerChangesNothing":             replacedOwnerChangesNothing,
	"StaleTokenIsRefusedByEveryScript":        staleTokenIsRefusedByEveryScript,
	"LateCallIsRefused":                       lateCallIsRefused,
	"PoisonDoesNotStopTheLine":                poisonDoesNotStopTheLine,
	"StopCutsOffTheTurn":                      stopCutsOffTheTurn,
	"CommitOlderThanTheStopNumberSaysStopped": commitOlderThanTheStopNumberSaysStopped,
	"TooManyWaitingAreRefused":                tooManyWaitingAreRefused,
	"NodesShareFairly":                        nodesShareFairly,
	"MovingPartitionsLosesAndDoublesNothing":  movingPartitionsLosesAndDoublesNothing,
	"CleanStopCostsNoAttempt":                 cleanStopCostsNoAttempt,
	"LostWritesAreFoundAndCounted":            lostWritesAreFoundAndCounted,
	"StreamsGoneAreMadeAgain":                 streamsGoneAreMadeAgain,
	"PartitionsAreFixed":                      partitionsAreFixed,
	"BusyConversationDelaysNoOther":           busyConversationDelaysNoOther,
	"IdleConversationsAreSwept":               idleConversationsAreSwept,
	"PauseBetweenRunsOutlivesTheOwner":        pauseBetweenRunsOutlivesTheOwner,
	"ExtensionsChangeAllOrNothing":            extensionsChangeAllOrNothing,
}

func TestSuiteOnCluster(t *testing.T) {
	t.Parallel()
	onAll(t, storetest.Cluster(t))
}

func TestSuiteOnSentinel(t *testing.T) {
	t.Parallel()
	onAll(t, storetest.Sentinel(t).Store())
}

// onAll runs the suite on one deployment, each case with clients of its own.
func onAll(t *testing.T, s *store.Store) {
	for name, run := range suite {
		t.Run(name, func(t *testing.T) { run(t, storetest.Another(t, s)) })
	}
}
