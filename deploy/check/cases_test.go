package check

import "slices"

// A case is when an alert is to fire and when not.
type both struct{ loud, quiet map[string][]series }

type when = map[string][]series

var cases = map[string]both{
	"MimikitNodeDown": {
		when{"one of two": {at(`up{job="mimikit",instance="a"}`, 0), at(`up{job="mimikit",instance="b"}`, 1)}},
		when{"both are up": {at(`up{job="mimikit",instance="a"}`, 1)}, "a restart": {blip(`up{job="mimikit"}`, 1, 0)}, "another's": {at(`up{job="redis"}`, 0)}},
	},
	"MimikitAway": {
		when{"nothing is scraped": nil, "it is gone": {until(length-20, at(`mimikit_build_info{version="v1"}`, 1))}},
		when{"it runs": {at(`mimikit_build_info{version="v1"}`, 1)}},
	},
	"MimikitPartitionsWithoutOwner": {
		when{"three": {at("mimikit_partitions", 16), at("mimikit_partitions_owned", 13)}},
		when{"none": {at("mimikit_partitions", 16), at("mimikit_partitions_owned", 16)}, "for a lease": {at("mimikit_partitions", 16), blip("mimikit_partitions_owned", 16, 8)}},
	},
	"MimikitAnswersSlow": {
		when{"all": took("mimikit_hop_duration_seconds", `stage="outbox",`, 2, 90), "some": slices.Concat(took("mimikit_hop_duration_seconds", `stage="outbox",instance="a",`, 6, 2), took("mimikit_hop_duration_seconds", `stage="outbox",instance="b",`, 2, 90))},
		when{"quick": took("mimikit_hop_duration_seconds", `stage="outbox",`, 2, 9), "nobody asks": took("mimikit_hop_duration_seconds", `stage="outbox",`, 0, 9), "another stage": took("mimikit_hop_duration_seconds", `stage="digest",`, 2, 90)},
	},
	"MimikitMessagesWait": {
		when{"three minutes": {at(`mimikit_waiting_oldest_seconds{channel="user-input"}`, 180)}},
		when{"a relaxed minute": {at(`mimikit_waiting_oldest_seconds{channel="user-input"}`, 60)}, "in a turn": {at(`mimikit_waiting_oldest_seconds{channel="teller-digest"}`, 180)}},
	},
	"MimikitTurnsWait": {
		when{"the thinker": {at(`mimikit_waiting_oldest_seconds{channel="teller-digest"}`, 900)}, "a result": {at(`mimikit_waiting_oldest_seconds{channel="worker-result"}`, 900)}},
		when{"a long turn": {at(`mimikit_waiting_oldest_seconds{channel="teller-digest"}`, 300)}, "others": {at(`mimikit_waiting_oldest_seconds{channel="user-input"}`, 900)}},
	},
	"MimikitRepliesWait": {
		when{"ten minutes": {at(`mimikit_waiting_oldest_seconds{channel="teller-reply"}`, 600)}},
		when{"a limit": {at(`mimikit_waiting_oldest_seconds{channel="teller-reply"}`, 60)}},
	},
	"MimikitDeadLetters": {
		when{"one": {at("mimikit_dead_letters_waiting", 1)}},
		when{"none": {at("mimikit_dead_letters_waiting", 0)}, "dropped at once": {blip("mimikit_dead_letters_waiting", 0, 1)}},
	},
	"MimikitMessagesRefused": {
		when{"a flood": {once(`mimikit_inputs_total{outcome="full",platform="slack"}`, 5)}},
		when{"long ago": {at(`mimikit_inputs_total{outcome="full",platform="slack"}`, 5)}, "accepted ones": {grows(`mimikit_inputs_total{outcome="accepted",platform="slack"}`, 50)}},
	},
	"MimikitModelMisconfigured": {
		when{"once": {once(`mimikit_model_errors_total{agent="thinker",kind="fatal"}`, 1)}},
		when{"mended": {at(`mimikit_model_errors_total{agent="thinker",kind="fatal"}`, 9)}, "overload": {grows(`mimikit_model_errors_total{agent="thinker",kind="transient"}`, 9)}},
	},
	"MimikitModelErrors": {
		when{"a third": {grows(`mimikit_model_errors_total{agent="thinker",kind="transient"}`, 1), grows(`mimikit_model_call_duration_seconds_count{agent="thinker"}`, 3)}},
		when{
			"one of twenty": {grows(`mimikit_model_errors_total{agent="thinker",kind="transient"}`, 1), grows(`mimikit_model_call_duration_seconds_count{agent="thinker"}`, 20)},
			"one at night":  {once(`mimikit_model_errors_total{agent="thinker",kind="transient"}`, 1), once(`mimikit_model_call_duration_seconds_count{agent="thinker"}`, 1)},
			"a budget":      {grows(`mimikit_model_errors_total{agent="thinker",kind="over_budget"}`, 3), grows(`mimikit_model_call_duration_seconds_count{agent="thinker"}`, 3)},
		},
	},
	"MimikitModelLeftAlone": {
		when{"for long": {at(`mimikit_model_breaker_open{endpoint="x",model="m"}`, 1)}},
		when{"closed": {at(`mimikit_model_breaker_open{endpoint="x",model="m"}`, 0)}, "for a moment": {blip(`mimikit_model_breaker_open{endpoint="x",model="m"}`, 0, 1)}},
	},
	"MimikitModelQueue": {
		when{"half a minute": took("mimikit_model_wait_seconds", "", 5, 30)},
		when{"a second": took("mimikit_model_wait_seconds", "", 5, 1)},
	},
	"MimikitBudgetSpent": {
		when{"a user's": {once(`mimikit_budget_refusals_total{subject="user"}`, 1)}},
		when{"yesterday": {at(`mimikit_budget_refusals_total{subject="user"}`, 7)}},
	},
	"MimikitTasksStand": {
		when{"no worker": {at(`mimikit_tasks{status="pending"}`, 3), at(`mimikit_tasks{status="running"}`, 0)}},
		when{"busy": {at(`mimikit_tasks{status="pending"}`, 30), at(`mimikit_tasks{status="running"}`, 3)}, "nothing to do": {at(`mimikit_tasks{status="pending"}`, 0), at(`mimikit_tasks{status="running"}`, 0)}},
	},
	"MimikitTasksSlow": {
		when{"an hour": took("mimikit_task_wait_seconds", `profile="standard",`, 1, 3600)},
		when{"seconds": took("mimikit_task_wait_seconds", `profile="standard",`, 1, 5)},
	},
	"MimikitTasksLapse": {
		when{"again and again": {grows("mimikit_task_lapses_total", 1)}},
		when{"one kill": {once("mimikit_task_lapses_total", 3)}},
	},
	"MimikitTasksFail": {
		when{"most": {grows(`mimikit_task_runs_ended_total{profile="standard",status="failed"}`, 2), grows(`mimikit_task_runs_ended_total{profile="standard",status="succeeded"}`, 1)}},
		when{
			"some":       {grows(`mimikit_task_runs_ended_total{profile="standard",status="failed"}`, 1), grows(`mimikit_task_runs_ended_total{profile="standard",status="succeeded"}`, 2)},
			"a lone one": {once(`mimikit_task_runs_ended_total{profile="standard",status="failed"}`, 1), at(`mimikit_task_runs_ended_total{profile="standard",status="succeeded"}`, 0)},
		},
	},
	"MimikitTriggersLate": {
		when{"five minutes": took("mimikit_trigger_late_seconds", `type="recurring",`, 1, 300)},
		when{"in time": took("mimikit_trigger_late_seconds", `type="recurring",`, 1, 1), "a condition": took("mimikit_trigger_late_seconds", `type="conditional",`, 1, 300)},
	},
	"MimikitDeaf": {
		when{"no node": {at(`mimikit_platform_sockets{platform="slack",instance="a"}`, 0), at(`mimikit_platform_sockets{platform="slack",instance="b"}`, 0)}},
		when{"one stands by": {at(`mimikit_platform_sockets{platform="slack",instance="a"}`, 0), at(`mimikit_platform_sockets{platform="slack",instance="b"}`, 1)}, "a new connection": {blip(`mimikit_platform_sockets{platform="slack"}`, 2, 0)}},
	},
	"MimikitPostsGivenUp": {
		when{"one": {once(`mimikit_posts_total{outcome="given_up",platform="slack"}`, 1)}},
		when{"posted": {grows(`mimikit_posts_total{outcome="posted",platform="slack"}`, 9)}, "tried again": {grows(`mimikit_posts_total{outcome="retry",platform="slack"}`, 9)}},
	},
	"MimikitPlatformCallsFail": {
		when{"revoked": {grows(`mimikit_platform_call_duration_seconds_count{platform="slack",method="chat.postMessage",outcome="token_revoked"}`, 3), grows(`mimikit_platform_call_duration_seconds_count{platform="slack",method="auth.test",outcome="ok"}`, 1)}},
		when{
			"some":  {grows(`mimikit_platform_call_duration_seconds_count{platform="slack",method="chat.postMessage",outcome="ratelimited"}`, 1), grows(`mimikit_platform_call_duration_seconds_count{platform="slack",method="auth.test",outcome="ok"}`, 9)},
			"a few": {once(`mimikit_platform_call_duration_seconds_count{platform="slack",method="chat.postMessage",outcome="ratelimited"}`, 2)},
		},
	},
	"MimikitRateLimited": {
		when{"for long": took("mimikit_rate_limit_wait_seconds", `platform="slack",`, 2, 60)},
		when{"a moment": took("mimikit_rate_limit_wait_seconds", `platform="slack",`, 2, 1)},
	},
	"MimikitWritesLost": {
		when{"some": {once("mimikit_lost_commits_total", 2)}},
		when{"none": {at("mimikit_lost_commits_total", 0)}, "long ago": {at("mimikit_lost_commits_total", 2)}},
	},
	"MimikitRedisErrors": {
		when{"an outage": {grows(`mimikit_redis_errors_total{operation="retry"}`, 200)}},
		when{"a restart": {once(`mimikit_redis_errors_total{operation="retry"}`, 100)}, "now and then": {grows(`mimikit_redis_errors_total{operation="retry"}`, 1)}},
	},
	"MimikitRedisUnreadable": {
		when{"of one node": {at(`mimikit_state_up{instance="a"}`, 1), at(`mimikit_state_up{instance="b"}`, 0)}},
		when{"well": {at("mimikit_state_up", 1)}, "once": {blip("mimikit_state_up", 1, 0)}},
	},
	"MimikitHistoryLost": {
		when{"some": {once("mimikit_history_lines_cut_total", 100)}},
		when{"none": {at("mimikit_history_lines_cut_total", 0)}},
	},
	"MimikitTracesLost": {
		when{"away": {grows(`mimikit_trace_spans_total{outcome="failed"}`, 10)}, "too many": {grows(`mimikit_trace_spans_total{outcome="dropped"}`, 10)}},
		when{"sent": {grows(`mimikit_trace_spans_total{outcome="sent"}`, 10)}, "a restart": {once(`mimikit_trace_spans_total{outcome="dropped"}`, 10)}},
	},
}

// blip is a series that has another value for one minute, at the end.
func blip(name string, usual, then float64) series {
	return series{name, func(minute int) float64 {
		if minute == length {
			return then
		}
		return usual
	}}
}
