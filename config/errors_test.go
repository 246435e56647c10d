package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every case is a mistake somebody will make, and the words that must help.
func TestMistakes(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		yaml string
		env  []string
		want []string
	}{
		{"typo", "teller:\n  debonce: 2s\n", nil, []string{"mimikit.yaml:2: teller.debonce: there is no such key; did you mean debounce?"}},
		{"typo of a section", "telller: {poll: 1s}\n", nil, []string{"mimikit.yaml:1: telller: there is no such key; did you mean teller?"}},
		{"wrong case", "dataDIR: x\n", nil, []string{"did you mean dataDir?"}},
		{"wrong section", "debounce: 2s\n", nil, []string{"mimikit.yaml:1: debounce:", "did you mean teller.debounce?"}},
		{"dotted", "teller.debounce: 2s\n", nil, []string{"write sections as nested keys: teller: {debounce: …}"}},
		{"nothing near", "redis:\n  zzzzzzzzzz: 1\n", nil, []string{"redis.zzzzzzzzzz", "allowed here: mode, addrs"}},
		{"no unit", "teller: {debounce: 2}\n", nil, []string{"teller.debounce: 2: want a number with its unit", "allowed: 0s to 10m"}},
		{"not a duration", "teller: {debounce: soon}\n", nil, []string{"mimikit.yaml:1: teller.debounce: soon: want"}},
		{"too long", "teller: {debounce: 90m, maxInputWait: 1h}\n", nil, []string{"mimikit.yaml:1: teller.debounce: 1h30m: allowed: 0s to 10m"}},
		{"negative", "thinker: {minInterval: -1s}\n", nil, []string{"thinker.minInterval: -1s: allowed: 0s to 1h"}},
		{"not a number", "channel: {partitions: many}\n", nil, []string{"channel.partitions: many: want a whole number from 1 to 1024"}},
		{"fraction", "channel: {partitions: 1.5}\n", nil, []string{"want a whole number"}},
		{"too many", "channel: {partitions: 4096}\n", nil, []string{"channel.partitions: 4096: allowed: a whole number from 1 to 1024"}},
		{"not a size", "thinker: {historyBytes: 20KB}\n", nil, []string{"thinker.historyBytes: 20KB: want a whole number with B, KiB, MiB or GiB"}},
		{"not a choice", "pace: fast\n", nil, []string{`mimikit.yaml:1: pace: "fast": allowed: chat, relaxed`}},
		{"not a bool", "redis: {tls: yes please}\n", nil, []string{"redis.tls: yes please: want true, false"}},
		{"value for a section", "teller: 5\n", nil, []string{"mimikit.yaml:1: teller: holds keys, not a value: poll, debounce"}},
		{"section for a value", "name: {a: b}\n", nil, []string{"mimikit.yaml:1: name: want"}},
		{"list for a value", "name: [a]\n", nil, []string{"mimikit.yaml:1: name: want"}},
		{"value for headers", "llm: {headers: a}\n", nil, []string{"llm.headers: want pairs"}},
		{"nested header", "llm: {headers: {X-A: {b: c}}}\n", nil, []string{"llm.headers.X-A: want text"}},
		{"empty item", "redis: {addrs: ['']}\n", nil, []string{"redis.addrs: each item must be host:port"}},
		{"no value", "name:\n", nil, []string{"mimikit.yaml:1: name: has no value"}},
		{"twice", "name: a\npace: chat\nname: b\n", nil, []string{"mimikit.yaml:3: name: is set twice; first in line 1"}},
		{"not a mapping", "- a\n", nil, []string{"config: holds keys, not a value: name, dataDir"}},
		{"not YAML", "name: [\n", nil, []string{"read config", "mimikit.yaml", "line"}},
		{"two documents", "name: a\n---\nname: b\n", nil, []string{"more than one YAML document"}},
		{"key in clear", "llm: {key: sk-123456}\n", nil, []string{"mimikit.yaml:1: llm.key: a secret must not stand in this file", "keyFile", "MIMIKIT_LLM_KEY", "MIMIKIT_LLM_KEY_FILE"}},
		{"password in clear", "redis: {password: sk-123456}\n", nil, []string{"redis.password: a secret must not stand", "passwordFile", "MIMIKIT_REDIS_PASSWORD_FILE"}},
		{"secret header in clear", "llm: {headers: {api-key: sk-123456}}\n", nil, []string{"llm.headers.api-key: looks like a secret"}},
		{"control character", "name: \"a\\u0007\"\n", nil, []string{`name: "a\a": allowed: 1 to 80 letters`}},
		{"empty name", "name: ''\n", nil, []string{`name: "": allowed: 1 to 80 letters`}},
		{"bad URL", "llm: {baseURL: api.openai.com, model: m}\n", nil, []string{`llm.baseURL: "api.openai.com": allowed: an http or https URL`}},
		{"credentials in URL", "llm: {baseURL: 'https://a:b@c/v1', model: m}\n", nil, []string{"llm.baseURL", "without credentials"}},
		{"bad header", "llm: {headers: {'a b': c}}\n", nil, []string{"llm.headers: (secret): allowed: pairs of header name and value"}},
		{"bad listen", "http: {listen: '8080'}\n", nil, []string{`http.listen: "8080": allowed: host:port, :port, or off`}},
		{"tokens mixed up", "", []string{"MIMIKIT_SLACK_BOT_TOKEN=xapp-1", "MIMIKIT_SLACK_APP_TOKEN=xapp-1"}, []string{`slack.botToken): must begin with xoxb-; it stands under "OAuth & Permissions" of the app`}},
		{"no app token", "", []string{"MIMIKIT_SLACK_BOT_TOKEN=xoxb-1"}, []string{"slack.appToken: is not set; slack.mode socket wants the app-level token"}},
		{"no signing secret", "slack: {mode: http}\n", []string{"MIMIKIT_SLACK_BOT_TOKEN=xoxb-1"}, []string{"slack.signingSecret: is not set; slack.mode http wants the signing secret"}},
		{"no bot token", "", []string{"MIMIKIT_SLACK_APP_TOKEN=xapp-1"}, []string{"slack.appToken): is set, but slack.botToken is not"}},
		{"no platform", "access: {admins: [U024BE7LH]}\n", nil, []string{`access.admins: "U024BE7LH": allowed: platform:id`}},
		{"an id of no kind", "access: {places: ['discord:general']}\n", nil, []string{`access.places: "discord:general": allowed: platform:id`}},
		{"bad command", "slack: {command: mimikit}\n", nil, []string{`slack.command: "mimikit": allowed: a slash and`}},
		{"bad guild", "discord: {guild: '12'}\n", nil, []string{`discord.guild: "12": allowed: a guild's id`}},
		{"a page open to all", "page: {listen: ':8081'}\n", nil, []string{"page.token: is not set, and others than this machine reach page.listen"}},
		{"a short token", "page: {listen: ':8081'}\n", []string{"MIMIKIT_PAGE_TOKEN=short"}, []string{"page.token): is too short"}},
		{"braces", "redis: {prefix: '{a}'}\n", nil, []string{`redis.prefix: "{a}": allowed: 1 to 64 letters`}},
		{"bad node", "node: a b\n", nil, []string{`node: "a b": allowed:`}},
		{"no model", "", []string{"MIMIKIT_LLM_KEY=sk-123456"}, []string{"llm.model: is not set; name the model to use at the endpoint that llm.key opens"}},
		{"window upside down", "teller: {historyMessages: {min: 30}}\n", nil, []string{"teller.historyMessages.min: 30: must not be more than teller.historyMessages.max, which is 20"}},
		{"debounce beyond wait", "teller: {maxInputWait: 1s}\n", nil, []string{"teller.debounce: 1.2s: must not be more than teller.maxInputWait, which is 1s"}},
		{"look-up before timeout", "outbox: {postTimeout: 1m}\n", nil, []string{"outbox.lookupAfter: 20s: must be more than outbox.postTimeout, which is 1m"}},
		{"address for embedded", "redis: {addrs: [localhost:6379]}\n", nil, []string{`redis.addrs: "localhost:6379": has no meaning`, "set redis.mode to single"}},
		{"address with scheme", "redis: {mode: single, addrs: ['redis://u:p@h:1']}\n", nil, []string{"redis.addrs", "allowed: host:port"}},
		{"an account in an address", "", []string{"MIMIKIT_TELEMETRY_OTLP_ENDPOINT=http://u:sk-123456@h:4318"}, []string{"http://…@h:4318", "without credentials"}},
		{"no port", "redis: {mode: single, addrs: [localhost]}\n", nil, []string{`redis.addrs: "localhost": allowed: host:port`}},
		{"two for single", "redis: {mode: single, addrs: [a:1, b:1]}\n", nil, []string{"redis.mode single wants one address"}},
		{"sentinel without name", "redis: {mode: sentinel, addrs: [a:1]}\n", nil, []string{"redis.masterName: redis.mode sentinel wants the name"}},
		{"sentinel without address", "redis: {mode: sentinel, masterName: m}\n", nil, []string{"wants the addresses of the Sentinels"}},
		{"cluster database", "redis: {mode: cluster, addrs: [a:1], db: 3}\n", nil, []string{"redis.db: 3: a Redis Cluster has database 0 only"}},
		{"name without sentinel", "redis: {mode: single, addrs: [a:1], masterName: m}\n", nil, []string{"for redis.mode sentinel only"}},
		{"socket for cluster", "redis: {mode: cluster, addrs: [/run/redis.sock]}\n", nil, []string{"a unix socket has a meaning for redis.mode single only"}},
		{"no such key file", "llm: {keyFile: nowhere, model: m}\n", nil, []string{"mimikit.yaml:1: llm.keyFile: cannot be read:", "nowhere: no such file"}},
		{"key file is a directory", "llm: {keyFile: /, model: m}\n", nil, []string{"llm.keyFile: /: must be a plain file"}},
		{"unknown variable", "", []string{"MIMIKIT_TELLER_DEBOUNC=sk-123456"}, []string{"environment: MIMIKIT_TELLER_DEBOUNC: there is no such variable; did you mean MIMIKIT_TELLER_DEBOUNCE?"}},
		{"unrelated variable", "", []string{"MIMIKIT_SOMETHING_ELSE_ENTIRELY_LONG=1"}, []string{"there is no such variable"}},
		{"wrong in environment", "", []string{"MIMIKIT_TELLER_DEBOUNCE=2"}, []string{"environment: MIMIKIT_TELLER_DEBOUNCE (teller.debounce): 2: want a number with its unit"}},
		{"out of range in environment", "", []string{"MIMIKIT_WORKER_MAX_CONCURRENT=0"}, []string{"environment: MIMIKIT_WORKER_MAX_CONCURRENT (worker.maxConcurrent): 0: allowed: a whole number from 1 to 256"}},
		{"headers in environment", "", []string{"MIMIKIT_LLM_HEADERS=sk-123456"}, []string{"MIMIKIT_LLM_HEADERS (llm.headers): (secret): want pairs"}},
		{"not UTF-8", "", []string{"MIMIKIT_NAME=\xff"}, []string{"MIMIKIT_NAME (name): is not UTF-8"}},
		{"port that is not Kubernetes'", "", []string{"MIMIKIT_PORT=8080"}, []string{"MIMIKIT_PORT: there is no such variable"}},
		{"key given twice", "", []string{"MIMIKIT_LLM_KEY=sk-123456", "MIMIKIT_LLM_KEY_FILE=/k", "MIMIKIT_LLM_MODEL=m"}, []string{"is set twice; unset MIMIKIT_LLM_KEY or MIMIKIT_LLM_KEY_FILE"}},
		{"negative money", "budgets: {user: {money: -1}}\n", nil, []string{"mimikit.yaml:1: budgets.user.money: -1: want an amount with a point", "allowed: an amount from 0 to 1000000000"}},
		{"decimal comma", "budgets: {user: {money: '2,50'}}\n", nil, []string{"budgets.user.money: 2,50: want an amount with a point and at most six decimals"}},
		{"too much money", "llm: {prices: {m: 1/1}}\nbudgets: {task: {money: 1000000000.01}}\n", nil, []string{"mimikit.yaml:2: budgets.task.money: 1000000000.01: allowed: an amount from 0 to 1000000000"}},
		{"money without prices", "budgets: {user: {money: 5}}\n", nil, []string{"budgets.user.money: 5: bounds nothing while llm.prices is empty", "budgets.user.tokens"}},
		{"too many tokens", "budgets: {place: {tokens: 2000000001}}\n", nil, []string{"budgets.place.tokens: 2000000001: allowed: a whole number from 0 to 2000000000"}},
		{"no warning", "budgets: {warn: 0}\n", nil, []string{"budgets.warn: 0: allowed: a whole number from 1 to 100"}},
		{"no such choice for the unknown", "budgets: {unknown: deny}\n", nil, []string{`budgets.unknown: "deny": allowed: allow, refuse`}},
		{"no currency", "budgets: {currency: US dollar}\n", nil, []string{`budgets.currency: "US dollar": allowed: 1 to 8 letters`}},
		{"price of one part", "llm:\n  prices:\n    a: 1/2\n    gpt-5: 1.25\n", nil, []string{`mimikit.yaml:4: llm.prices.gpt-5: "1.25": want prompt/cached/completion or prompt/completion`}},
		{"price of four parts", "llm: {prices: {gpt-5: 1/2/3/4}}\n", nil, []string{`llm.prices.gpt-5: "1/2/3/4": want prompt/cached/completion`}},
		{"price too high", "llm: {prices: {gpt-5: 1/100000.000001}}\n", nil, []string{"llm.prices.gpt-5", "from 0 to 100000"}},
		{"price as a section", "llm: {prices: {gpt-5: {prompt: 1}}}\n", nil, []string{"mimikit.yaml:1: llm.prices.gpt-5: want prompt/cached/completion"}},
		{"price without a model", "llm: {prices: {'': 1/2}}\n", nil, []string{`llm.prices.: "1/2": want a model's name`}},
		{"two prices", "llm:\n  prices:\n    a: 1/2\n    a: 3/4\n", nil, []string{"mimikit.yaml:4: llm.prices.a: is set twice"}},
		{"value for prices", "llm: {prices: 1/2}\n", nil, []string{"llm.prices: want model names or patterns"}},
		{"prices in environment", "", []string{"MIMIKIT_LLM_PRICES=a=1/2,b=dear"}, []string{`MIMIKIT_LLM_PRICES (llm.prices): "a=1/2,b=dear": b: want prompt/cached/completion`}},
		{"nameless prices in environment", "", []string{"MIMIKIT_LLM_PRICES=1/2"}, []string{`MIMIKIT_LLM_PRICES (llm.prices): "1/2": want model names or patterns`}},
		{"empty fallback", "llm: {models: {fallback: ['']}}\n", nil, []string{"llm.models.fallback: each item must be a model's name"}},
		{"fallbacks in one", "llm: {models: {fallback: ['a, b']}}\n", nil, []string{`llm.models.fallback: "a, b": allowed: a model's name each`, "no comma"}},
		{"second key in clear", "llm: {second: {key: sk-123456}}\n", nil, []string{"mimikit.yaml:1: llm.second.key: a secret must not stand in this file", "keyFile", "MIMIKIT_LLM_SECOND_KEY_FILE"}},
		{"second secret header in clear", "llm: {second: {headers: {Authorization: sk-123456}}}\n", nil, []string{"llm.second.headers.Authorization: looks like a secret", "llm.second.keyFile", "MIMIKIT_LLM_SECOND_HEADERS=Authorization="}},
		{"second headers in environment", "", []string{"MIMIKIT_LLM_SECOND_HEADERS=sk-123456"}, []string{"(llm.second.headers): (secret): want pairs"}},
		{"second without first", "llm: {second: {baseURL: 'http://b/v1'}}\n", nil, []string{`llm.second.baseURL: "http://b/v1": there is no first endpoint`, "llm.baseURL"}},
		{"second key without first", "", []string{"MIMIKIT_LLM_SECOND_KEY=sk-123456"}, []string{"environment: MIMIKIT_LLM_SECOND_KEY (llm.second.key): there is no first endpoint"}},
		{"second model without endpoint", "llm: {second: {model: m}}\n", nil, []string{`llm.second.model: "m": is set, but llm.second names no endpoint`, "llm.models.fallback"}},
		{"second headers without endpoint", "", []string{"MIMIKIT_LLM_SECOND_HEADERS=X-A=sk-123456"}, []string{"(llm.second.headers): is set, but llm.second names no endpoint"}},
		{"second URL", "llm: {baseURL: 'http://a', model: m, second: {baseURL: b}}\n", nil, []string{`llm.second.baseURL: "b": allowed: an http or https URL`}},
		{"no such API", "llm: {api: completions}\n", nil, []string{`llm.api: "completions": allowed: auto, chat, responses`}},
		{"no such way to act", "llm: {actions: none}\n", nil, []string{`llm.actions: "none": allowed: native, block`}},
		{"no breaker", "llm: {breaker: {failures: 0}}\n", nil, []string{"llm.breaker.failures: 0: allowed: a whole number from 1 to 100"}},
		{"all lines kept", "history: {foldLines: 60}\n", nil, []string{"history.keep: 60: must be less than history.foldLines, which is 60"}},
		{"rare heartbeat", "worker: {lease: 20s}\n", nil, []string{"worker.heartbeat: 10s: must be at most a third of worker.lease, which is 20s"}},
		{"no sandbox is not a choice", "sandbox: {mode: none}\n", nil, []string{`sandbox.mode: "none": allowed: auto, off`}},
		{"too little memory", "sandbox: {memory: 1MiB}\n", nil, []string{"sandbox.memory: 1MiB: allowed: 16MiB to 64GiB"}},
		{"port of a host", "fetch: {allowHosts: ['a.example:80']}\n", nil, []string{`fetch.allowHosts: "a.example:80": allowed: a host name, address or network`}},
		{"network with a host in it", "fetch: {allowHosts: [10.0.0.5/8]}\n", nil, []string{`fetch.allowHosts: "10.0.0.5/8": allowed:`}},
		{"all at once", "namme: a\nteller: {debounce: x}\n", []string{"MIMIKIT_PAEC=1"}, []string{"did you mean name?", "teller.debounce: x", "did you mean MIMIKIT_PACE?"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := Load(write(t, c.yaml), append(c.env, home...))
			if err == nil {
				t.Fatal("Load took it")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got:\n%v\nwant in it: %s", err, want)
				}
			}
			if strings.Contains(err.Error(), "sk-123456") {
				t.Errorf("the error tells a secret: %v", err)
			}
		})
	}
}

func TestFileErrors(t *testing.T) {
	t.Parallel()
	if _, err := Load(filepath.Join(t.TempDir(), "none.yaml"), home); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if _, err := Load(write(t, strings.Repeat("# long\n", 200000)), home); err == nil || !strings.Contains(err.Error(), "larger than 1MiB") {
		t.Errorf("large file: %v", err)
	}
	if _, err := Load("", nil); err == nil || !strings.Contains(err.Error(), "MIMIKIT_DATA_DIR") {
		t.Errorf("no home: %v", err)
	}
	if _, err := Load("", []string{"MIMIKIT_DATA_DIR=~/x"}); err == nil || !strings.Contains(err.Error(), "HOME is not set") {
		t.Errorf("~ without home: %v", err)
	}
	if _, err := Load(write(t, "# nothing\nteller:\n"), home); err != nil {
		t.Errorf("comments and an empty section: %v", err)
	}
}

// A Service called mimikit, or mimikit-redis, must not stop the bot.
func TestOrchestratorVariables(t *testing.T) {
	t.Parallel()
	_, err := Load("", append(home,
		"MIMIKIT_SERVICE_HOST=10.0.0.1", "MIMIKIT_SERVICE_PORT=8080", "MIMIKIT_SERVICE_PORT_HTTP=8080", "MIMIKIT_PORT=tcp://10.0.0.1:8080",
		"MIMIKIT_PORT_8080_TCP=tcp://10.0.0.1:8080", "MIMIKIT_PORT_8080_TCP_PROTO=tcp", "MIMIKIT_PORT_8080_TCP_PORT=8080",
		"MIMIKIT_PORT_8080_TCP_ADDR=10.0.0.1", "MIMIKIT_REDIS_SERVICE_HOST=10.0.0.2", "MIMIKIT_REDIS_PORT=tcp://10.0.0.2:6379"))
	if err != nil {
		t.Fatal(err)
	}
}

func TestBytes(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]Bytes{"0": 0, "12": 12, "12B": 12, "20KiB": 20 * KiB, "20 KiB": 20 * KiB, "3MiB": 3 * MiB, "2GiB": 2 * GiB} {
		got, err := parseBytes(s)
		if err != nil || got != want {
			t.Errorf("parse %q: got %d, %v; want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "KiB", "-1", "1.5KiB", "20KB", "20kib", "9223372036854775807KiB", "99999999999999999999"} {
		if got, err := parseBytes(s); err == nil {
			t.Errorf("parse %q: got %d, want an error", s, got)
		}
	}
	for b, want := range map[Bytes]string{0: "0B", 5: "5B", 20 * KiB: "20KiB", 3 * MiB: "3MiB", 1024 * MiB: "1GiB", 1500: "1500B"} {
		if got := b.String(); got != want {
			t.Errorf("%d: got %s, want %s", int64(b), got, want)
		}
	}
}

func FuzzFile(f *testing.F) {
	f.Add([]byte(Example))
	f.Add([]byte("a: &a {b: *a}\nteller: *a\n"))
	f.Add([]byte("redis: {addrs: [a:1]}"))
	f.Fuzz(func(_ *testing.T, yaml []byte) {
		_, _ = parseFile("mimikit.yaml", yaml) // whatever it says, it must not panic
	})
}

// A file that is built to be dear is refused, or read, in moments: what is repeated in
// it is not multiplied.
func TestDearFiles(t *testing.T) {
	t.Parallel()
	laughs := "a0: &a0 [x]\n"
	for i := 1; i < 30; i++ {
		laughs += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10))
	}
	for name, file := range map[string]string{
		"aliases":     laughs + "name: *a29\nslack: {bots: *a29}\n",
		"a circle":    "llm: &l\n  models: *l\n",
		"itself":      "name: &n [*n]\n",
		"deep":        "name: " + strings.Repeat("[", 100_000),
		"deep keys":   strings.Repeat("{a: ", 50_000),
		"a long line": "name: " + strings.Repeat("x", 2<<20),
		"many keys":   strings.Repeat("x: 1\n", 100_000),
	} {
		path := filepath.Join(t.TempDir(), "mimikit.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Load(path, nil)
		if err == nil {
			t.Errorf("%s: it is taken", name)
		} else if len(err.Error()) > 64<<10 {
			t.Errorf("%s: the error has %d bytes", name, len(err.Error()))
		}
	}
}
