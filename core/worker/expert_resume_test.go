package worker

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// What a run was cut off from, the next goes on with.
func TestExpertResumes(t *testing.T) {
	t.Parallel()
	b := newExpertBench(t, "dies")
	if _, err := b.do(t.Context()); err == nil {
		t.Fatal("it died well")
	}
	if !bytes.Contains(b.data, []byte(fakeThread)) {
		t.Fatalf("the checkpoint is %s", b.data)
	}
	b.task.Attempts++
	b.o.Env = map[string]string{"FAKE_AGENT": "works"}
	b.renew()
	out, err := b.do(t.Context())
	if err != nil || out.Output != "Gone on." {
		t.Fatalf("%+v, %v", out, err)
	}
	if args := b.saw("args"); !strings.HasSuffix(args, "resume\x00"+fakeThread+"\x00-") {
		t.Errorf("started with %q", args)
	}
	if told := b.saw("told"); !strings.Contains(told, "your work at this task was cut off") || strings.Contains(told, "You carry out one task") {
		t.Errorf("it is told\n%s", told)
	}
	if out.Usage.Prompt != 300 {
		t.Errorf("usage %+v, want what the run before was not told of, too", out.Usage)
	}
	// The counts go on with the talk, so a third run is charged the difference only.
	b.task.Attempts++
	if out, err = b.do(t.Context()); err != nil || out.Usage.Prompt != 0 {
		t.Errorf("third run: %+v, %v", out.Usage, err)
	}
}

// A talk that is not to be had any more is begun anew, over the same files.
func TestExpertBeginsAnew(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(b *expertBench){
		"the home is gone":          func(b *expertBench) { _ = os.RemoveAll(b.o.Homes) },
		"it does not know its talk": func(*expertBench) {},
		"the checkpoint names no talk": func(b *expertBench) {
			b.data = bytes.ReplaceAll(b.data, []byte(fakeThread), []byte("../../x"))
		},
		"it was full": func(b *expertBench) {
			b.o.Env = map[string]string{"FAKE_AGENT": "full"}
			b.renew()
			if _, err := b.do(t.Context()); err == nil {
				t.Error("a full talk went on")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newExpertBench(t, "dies")
			_, _ = b.do(t.Context())
			lose(b)
			b.o.Env = map[string]string{"FAKE_AGENT": "forgets"}
			b.renew()
			out, err := b.do(t.Context())
			if err != nil || out.Output != "Begun anew." || out.Usage.Prompt != 50 {
				t.Fatalf("%+v, %v", out, err)
			}
			if told := b.saw("told"); !strings.Contains(told, "an earlier run of this task was cut off") || !strings.Contains(told, "You carry out one task") {
				t.Errorf("it is told\n%s", told)
			}
		})
	}
}
