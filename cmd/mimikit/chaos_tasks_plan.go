package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"mimikit/core/chat"
	"mimikit/core/task"
)

// chaosEpoch is the time in the ids that are derived in a run.
var chaosEpoch = time.Unix(1763692800, 0).UTC()

// What a task of a chaos run does.
const (
	doWork   = "work"   // takes its time and succeeds
	doDeaf   = "deaf"   // the same, and does not hear its context
	doSteps  = "steps"  // succeeds after some steps, each with a checkpoint
	doFlaky  = "flaky"  // fails some runs, then succeeds
	doBroken = "broken" // fails every run
	doFinal  = "final"  // fails for good at once
	doPanic  = "panic"
	doSlow   = "slow"   // takes longer than its timeout, in every run
	doParent = "parent" // starts children, then takes its time
	doAsk    = "ask"    // asks, and succeeds when it is answered
	doChain  = "chain"  // succeeds; who reads its result makes another task, and watches that
)

// A taskPlan is what a task of a chaos run is to do. It travels in the task's title,
// so that whoever has the task or its result knows it.
type taskPlan struct {
	N        int    `json:"n"`
	Do       string `json:"do"`
	Ms       int    `json:"ms"`                 // that a run takes
	Fails    int    `json:"fails,omitempty"`    // runs that fail before one succeeds
	Retries  int    `json:"retries,omitempty"`  // that it has
	Timeout  int    `json:"timeout,omitempty"`  // ms
	Steps    int    `json:"steps,omitempty"`    // with a checkpoint after each
	Kids     int    `json:"kids,omitempty"`     // that it starts
	Internal bool   `json:"internal,omitempty"` // its result is for the supervisor alone
}

// newTaskPlan makes a plan by chance.
func newTaskPlan(r *rand.Rand, n int) taskPlan {
	p := taskPlan{N: n, Do: doWork, Ms: r.IntN(250), Retries: r.IntN(2), Internal: r.IntN(12) == 0}
	if r.IntN(10) == 0 {
		p.Ms += r.IntN(2500) // some outlast a lease
	}
	switch x := r.IntN(100); {
	case x < 10:
		p.Do, p.Steps = doSteps, 2+r.IntN(6)
	case x < 25:
		p.Do, p.Fails = doFlaky, 1+r.IntN(2)
		p.Retries = p.Fails + r.IntN(2)
	case x < 33:
		p.Do = doBroken
	case x < 37:
		p.Do = doFinal
	case x < 40:
		p.Do, p.Retries = doPanic, 0
	case x < 47:
		p.Do, p.Timeout = doSlow, 50+r.IntN(200)
	case x < 59:
		p.Do, p.Kids = doParent, 1+r.IntN(4)
	case x < 65:
		p.Do = doAsk
	case x < 73:
		p.Do, p.Internal = doChain, false
	case x < 79:
		p.Do, p.Ms = doDeaf, 100+r.IntN(500)
	}
	return p
}

// cancelAfter decides by chance whether somebody cancels the task, and when: as a
// rule while it runs or waits. Parents are canceled more often, and those that do
// not hear it, so that they succeed all the same.
func (p taskPlan) cancelAfter(r *rand.Rand) (wait time.Duration, yes bool) {
	one := 12
	if p.Kids > 0 || p.Do == doDeaf {
		one = 3
	}
	return time.Duration(r.Float64() * 1.3 * float64(p.takes()+100*time.Millisecond)), r.IntN(one) == 0
}

// kid is the plan of the i-th child.
func (p taskPlan) kid(i int) taskPlan {
	k := taskPlan{N: (p.N+1)*1_000_000 + i, Do: doWork, Ms: p.Ms/2 + 50*i}
	if i == 2 {
		k.Do, k.Fails, k.Retries = doFlaky, 1, 1
	}
	if i == 0 && p.N < 1_000_000 && p.Kids > 2 {
		k.Do, k.Kids = doParent, 2 // grandchildren
	}
	return k
}

// next is the plan of the task that follows a chain.
func (p taskPlan) next() taskPlan {
	return taskPlan{N: (p.N+1)*1_000_000 + 999, Do: doWork, Ms: p.Ms / 2}
}

func (p taskPlan) draft(c chat.Conversation) task.Draft {
	d := task.Draft{
		Profile: task.Standard, Title: p.title(), Prompt: "task " + strconv.Itoa(p.N), Conversation: c,
		Requester: chat.Author{ID: "U1", Name: "Ann", Role: chat.RoleUser}, Priority: new(p.N % (task.MaxPriority + 1)),
		Retry: &task.Retry{MaxAttempts: p.Retries, Backoff: time.Duration(20+p.N%10*20) * time.Millisecond}, Internal: p.Internal,
	}
	if p.Timeout > 0 {
		d.Timeout = new(time.Duration(p.Timeout) * time.Millisecond)
	}
	return d
}

func (p taskPlan) takes() time.Duration { return time.Duration(p.Ms) * time.Millisecond }

func (p taskPlan) title() string {
	data, err := json.Marshal(p)
	if err != nil {
		panic(err) // numbers, words and a bool
	}
	return string(data)
}

func readTaskPlan(title string) (taskPlan, error) {
	var p taskPlan
	if err := json.Unmarshal([]byte(title), &p); err != nil {
		return p, fmt.Errorf("read the plan %q: %w", title, err)
	}
	if p.Do == "" {
		return p, fmt.Errorf("read the plan %q: it does not say what to do", title)
	}
	return p, nil
}

// An ending is how a task ends when nobody cancels it and no worker is killed.
type ending struct {
	status  task.Status
	reason  string
	retries int
}

func (p taskPlan) ending() ending {
	switch p.Do {
	case doFlaky:
		return ending{task.Succeeded, "", p.Fails}
	case doBroken:
		return ending{task.Failed, task.ReasonError, p.Retries}
	case doSlow:
		return ending{task.Failed, task.ReasonTimeout, p.Retries}
	case doFinal, doPanic:
		return ending{task.Failed, task.ReasonError, 0}
	}
	return ending{task.Succeeded, "", 0}
}

func chaosConversation(i int) chat.Conversation {
	return chat.Conversation{Platform: chaosName, Workspace: "T", Place: "c" + strconv.Itoa(i)}
}

// kidID and nextID are the ids under which what a task starts is made, however
// often that is tried.
func kidID(is *task.Issuer, c chat.Conversation, parent string, i int) string {
	return is.Derive(c, chaosEpoch, "kid", parent, strconv.Itoa(i))
}

func nextID(is *task.Issuer, c chat.Conversation, of string) string {
	return is.Derive(c, chaosEpoch, "next", of)
}
