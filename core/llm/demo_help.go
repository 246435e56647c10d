package llm

import (
	"fmt"
	"strings"
)

// A way is how an action is reached: a sentence to say, in each language, and
// what comes of it. An action without sentences does its work by itself.
type way struct {
	tool string
	does words
	says [4][]string
}

// ways are in the order in which a newcomer may try them.
var ways = []way{
	{"create_task", words{"a task in the background, which comes back with a result", "eine Aufgabe im Hintergrund, die mit einem Ergebnis zurückkommt", "后台任务，完成后返回结果", "una tarea en segundo plano que vuelve con un resultado"},
		[4][]string{
			{"find out why the nightly build fails", "in the background, take 40 seconds", "write a file notes.md: buy milk", "read the file notes.md", "search the files for milk", "replace `milk` by `tea` in the file notes.md", "apply this patch: …", "run `uname -a`", "fetch https://example.com"},
			{"finde heraus, warum der Build scheitert", "im Hintergrund: nimm dir 40 Sekunden", "schreibe eine Datei notes.md: Milch kaufen", "lies die Datei notes.md", "durchsuche die Dateien nach Milch", "ersetze `Milch` durch `Tee` in der Datei notes.md", "wende diesen Patch an: …", "führe `uname -a` aus", "hole https://example.com"},
			{"查一下构建为什么失败", "在后台用40秒", "写文件 notes.md：买牛奶", "读取文件 notes.md", "搜索文件 牛奶", "把 notes.md 里的 `牛奶` 改成 `茶`", "应用这个补丁：…", "运行 `uname -a`", "抓取 https://example.com"},
			{"averigua por qué falla el build", "en segundo plano, tómate 40 segundos", "escribe un archivo notes.md: comprar leche", "lee el archivo notes.md", "busca leche en los archivos", "reemplaza `leche` por `té` en el archivo notes.md", "aplica este parche: …", "ejecuta `uname -a`", "descarga https://example.com"},
		}},
	{"list_tasks", words{"what is running and set up", "was läuft und eingerichtet ist", "正在进行和已安排的事", "lo que está en curso y programado"},
		[4][]string{{"what are you working on?"}, {"woran arbeitest du?"}, {"你在做什么？"}, {"¿en qué estás trabajando?"}}},
	{"cancel_task", words{"the end of a task or a trigger", "das Ende einer Aufgabe oder eines Auslösers", "取消任务或触发器", "el final de una tarea o un disparador"},
		[4][]string{{"stop the build task"}, {"storniere die Build-Aufgabe"}, {"取消构建任务"}, {"cancela la tarea del build"}}},
	{"schedule", words{"something at a time, again and again, or when something happens", "etwas zu einer Zeit, immer wieder oder wenn etwas geschieht", "定时、重复或在某事发生时做", "algo a una hora, una y otra vez o cuando pase algo"},
		[4][]string{
			{"remind me in 2 minutes to stretch", "every weekday at 9, sum up the open tickets", "when notes.md changes, tell me"},
			{"erinnere mich in 2 Minuten an den Tee", "jeden Werktag um 9 Uhr fasse die offenen Tickets zusammen", "wenn sich notes.md ändert, sag mir Bescheid"},
			{"2分钟后提醒我喝水", "每个工作日早上9点总结未处理的工单", "当 notes.md 更新了，告诉我"},
			{"recuérdame en 2 minutos beber agua", "cada día laborable a las 9 resume los tickets abiertos", "cuando notes.md cambie, avísame"},
		}},
	{"delegate", words{"a large request, planned as several tasks", "ein großer Auftrag, als mehrere Aufgaben geplant", "较大的请求，规划成若干任务", "un encargo grande, planeado como varias tareas"},
		[4][]string{{"plan the release notes, then the announcement"}, {"plane die Notizen zur Version, danach die Ankündigung"}, {"规划版本说明，然后写公告"}, {"planifica las notas de la versión, luego el anuncio"}}},
	{"ask_user", words{"a question with buttons", "eine Frage mit Knöpfen", "带按钮的问题", "una pregunta con botones"},
		[4][]string{{"ask me which color: red, green or blue"}, {"frag mich, welche Farbe: Rot, Grün oder Blau"}, {"问我选哪种颜色：红、绿还是蓝"}, {"pregúntame qué color: rojo, verde o azul"}}},
	{"remember", words{"a note for later talks", "eine Notiz für spätere Gespräche", "留到以后的笔记", "una nota para más adelante"},
		[4][]string{{"remember that our releases are on Tuesdays"}, {"merk dir, dass wir dienstags ausliefern"}, {"记住我们每周二发布"}, {"recuerda que publicamos los martes"}}},
	{"search_memory", words{"what I have noted", "was ich notiert habe", "我记下的内容", "lo que tengo anotado"},
		[4][]string{{"what do you remember about releases?"}, {"was weißt du noch über Auslieferungen?"}, {"你记得关于发布的什么？"}, {"¿qué recuerdas de publicaciones?"}}},
	{"get_history_by_time", words{"what was said at a time", "was zu einer Zeit gesagt wurde", "某个时间说过的话", "lo que se dijo en cierta fecha"},
		[4][]string{{"what did I say yesterday?"}, {"was habe ich gestern gesagt?"}, {"我昨天说了什么？"}, {"¿qué dije ayer?"}}},
	{"get_recent_history", words{"what was said about something", "was über etwas gesagt wurde", "关于某事说过的话", "lo que se dijo sobre algo"},
		[4][]string{{"what did I say about releases?"}, {"was habe ich über Auslieferungen gesagt?"}, {"关于发布我说过什么？"}, {"¿qué dije sobre publicaciones?"}}},
	{"capture_feedback", words{"praise and blame, for those who run me", "Lob und Tadel, für meine Betreiber", "给运行者的表扬和批评", "elogios y quejas, para quienes me administran"},
		[4][]string{{"that answer was wrong"}, {"die Antwort war falsch"}, {"这个回答不对"}, {"la respuesta fue incorrecta"}}},
	{"summarize_task_result", words{"long results are kept in short, by themselves", "lange Ergebnisse werden von selbst kurz behalten", "较长的结果会自动保留摘要", "los resultados largos se guardan resumidos, sin pedirlo"}, [4][]string{}},
}

var saysCanDo = words{"What I can do here, and what to say:", "Was ich hier tun kann, und was du dazu sagst:", "我在这里能做的，以及怎么说：", "Lo que puedo hacer aquí y cómo decirlo:"}

// canDo lists the actions that are offered with a sentence for each, or with all
// sentences; "" when there are none.
func (o *demoOffer) canDo(lang language, all bool) string {
	colon, comma := ": ", ", "
	if lang == chinese {
		colon, comma = "：", "、"
	}
	var b strings.Builder
	for _, w := range ways {
		if !o.offers(w.tool) {
			continue
		}
		says := w.says[lang]
		if !all {
			says = says[:min(len(says), 1)]
		}
		if len(says) == 0 {
			if all {
				fmt.Fprintf(&b, "\n- %s", w.does[lang])
			}
			continue
		}
		var quotes []string
		for _, s := range says {
			quotes = append(quotes, inCode(s))
		}
		b.WriteString("\n- " + w.does[lang] + colon + strings.Join(quotes, comma))
	}
	if b.Len() == 0 {
		return ""
	}
	return saysCanDo[lang] + b.String()
}

// inCode marks text as code, also when there is code in it.
func inCode(s string) string {
	if strings.Contains(s, "`") {
		return "`` " + s + " ``"
	}
	return "`" + s + "`"
}
