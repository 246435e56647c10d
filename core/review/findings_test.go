package review

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mimikit/core/store/storetest"
)

func TestParse(t *testing.T) {
	t.Parallel()
	slow := Finding{"It was slow.", "speed", "high", "t1"}
	for name, c := range map[string]struct {
		text string
		want []Finding
		bad  bool
	}{
		"plain":               {`{"findings":[{"message":"It was slow.","category":"speed","severity":"high","task":"t1"}]}`, []Finding{slow}, false},
		"in a fence":          {"Here:\n```json\n{\"findings\": [{\"message\":\"It was\\nslow.\",\"category\":\"speed\",\"severity\":\"high\",\"task\":\"t1\"}]}\n```\nDone.", []Finding{slow}, false},
		"nothing":             {`{"findings":[]}`, nil, false},
		"braces before it":    {`I think {hm} and {"a":1} so {"findings":[{"message":"x"}]}`, []Finding{{"x", "other", "low", ""}}, false},
		"odd words":           {`{"findings":[{"message":"x","category":"doom","severity":"mortal"},{"message":" "}]}`, []Finding{{"x", "other", "low", ""}}, false},
		"more fields":         {`{"findings":[{"message":"x","category":"bug","severity":"low","score":3}],"note":"y"}`, []Finding{{"x", "bug", "low", ""}}, false},
		"no JSON":             {"nothing to report", nil, true},
		"cut off":             {`{"findings":[{"message":"x"`, nil, true},
		"findings of a kind":  {`{"findings":"none"}`, nil, true},
		"empty":               {"", nil, true},
		"an object too early": {`{"findings":"none"} {"findings":[]}`, nil, false},
	} {
		got, err := Parse(c.text)
		if diff := cmp.Diff(c.want, got); diff != "" || (err != nil) != c.bad {
			t.Errorf("%s: %v, -want +got:\n%s", name, err, diff)
		}
	}
	many := `{"findings":[` + strings.TrimSuffix(strings.Repeat(fmt.Sprintf(`{"message":%q},`, strings.Repeat("ä", 900)), 9), ",") + `]}`
	got, err := Parse(many)
	if err != nil || len(got) != MaxFindings || len(got[0].Message) > maxFinding {
		t.Errorf("%d findings, %v", len(got), err)
	}
}

func TestSchemaIsJSON(t *testing.T) {
	t.Parallel()
	if !json.Valid([]byte(Schema)) {
		t.Error("it is none")
	}
}

// A finding names a task that its conversation knows, and no other.
func TestFindingsNameKnownTasks(t *testing.T) {
	t.Parallel()
	r := newRig(t, storetest.Mini(t))
	r.said(thread, "do it", "task t7", "bot done")
	past, err := r.o.History.Recent(t.Context(), thread.Key(), 10)
	if err != nil {
		t.Fatal(err)
	}
	got := r.Reviewer.feedback(thread, past.Lines, []Finding{{"a", "bug", "low", "t7"}, {"b", "bug", "low", "t8"}, {"c", "bug", "low", ""}})
	if len(got) != 3 || got[0].TaskID != "t7" || got[1].TaskID != "" || got[2].TaskID != "" || !got[0].At.Equal(noon.Truncate(time.Millisecond)) {
		t.Errorf("got %+v", got)
	}
}
