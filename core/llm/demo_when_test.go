package llm_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// It is Monday, 2026-11-23, 10:15:30 UTC.
func TestDemoSchedules(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		// Again and again.
		"every 10 minutes check the page":                        `{"type":"recurring","interval":600}`,
		"check the page every ten minutes":                       `{"type":"recurring","interval":600,"title":"Check the page"}`,
		"every hour, look for new mails":                         `{"type":"recurring","interval":3600}`,
		"every 2 days at 8 check the backups":                    `{"type":"recurring","interval":172800,"nextRunAt":"2026-11-24T08:00:00Z"}`,
		"weekly, send a summary":                                 `{"type":"recurring","interval":604800}`,
		"every day at 9 sum up the news":                         `{"type":"recurring","cron":"0 9 * * *"}`,
		"sum up the news every morning at 7:30":                  `{"type":"recurring","cron":"30 7 * * *"}`,
		"at 9:15 every weekday check the queue":                  `{"type":"recurring","cron":"15 9 * * 1-5"}`,
		"every evening at 8 send me the numbers":                 `{"type":"recurring","cron":"0 20 * * *"}`,
		"every night send me the numbers":                        `{"type":"recurring","cron":"0 22 * * *"}`,
		"every Monday and Thursday at 5 pm remind us of the tea": `{"type":"recurring","cron":"0 17 * * 1,4","title":"The tea","prompt":"Reminder: the tea"}`,
		"on Fridays at noon post the menu":                       `{"type":"recurring","cron":"0 12 * * 5"}`,
		"every month send the bill":                              `{"type":"recurring","cron":"0 9 1 * *"}`,
		"every weekend at 10am clean up":                         `{"type":"recurring","cron":"0 10 * * 0,6"}`,
		"every weekday at 9 Europe/Berlin check the queue":       `{"type":"recurring","cron":"0 9 * * 1-5","zone":"Europe/Berlin"}`,
		"alle 10 Minuten prüfe die Seite":                        `{"type":"recurring","interval":600,"title":"Prüfe die Seite"}`,
		"jeden Werktag um 9 Uhr fasse die Tickets zusammen":      `{"type":"recurring","cron":"0 9 * * 1-5"}`,
		"jeden Montag um 8:30 schicke den Plan":                  `{"type":"recurring","cron":"30 8 * * 1"}`,
		"Prüfe die Seite jeden Abend um 8":                       `{"type":"recurring","cron":"0 20 * * *"}`,
		"每10分钟检查一下网页":                                            `{"type":"recurring","interval":600}`,
		"每个工作日早上9点总结工单":                                          `{"type":"recurring","cron":"0 9 * * 1-5","title":"总结工单"}`,
		"每周一下午3点半提醒我们开会":                                         `{"type":"recurring","cron":"30 15 * * 1","prompt":"提醒：开会"}`,
		"每天晚上8点汇总":                                               `{"type":"recurring","cron":"0 20 * * *"}`,
		"cada 10 minutos revisa la página":                       `{"type":"recurring","interval":600}`,
		"cada día laborable a las 9 resume los tickets":          `{"type":"recurring","cron":"0 9 * * 1-5"}`,
		"todos los lunes a las 9 de la noche envía los números":  `{"type":"recurring","cron":"0 21 * * 1"}`,

		// Once.
		"remind me in 5 minutes to stretch":              `{"type":"scheduled","runAt":"2026-11-23T10:20:30Z","title":"Stretch","prompt":"Reminder: stretch"}`,
		"in 5 minutes remind me to stretch":              `{"type":"scheduled","runAt":"2026-11-23T10:20:30Z","prompt":"Reminder: stretch"}`,
		"in half an hour check the build":                `{"type":"scheduled","runAt":"2026-11-23T10:45:30Z","title":"Check the build"}`,
		"remind me to call the lab tomorrow at 9":        `{"type":"scheduled","runAt":"2026-11-24T09:00:00Z","prompt":"Reminder: call the lab"}`,
		"tomorrow at nine call the lab":                  `{"type":"scheduled","runAt":"2026-11-24T09:00:00Z"}`,
		"remind me at 5pm to leave":                      `{"type":"scheduled","runAt":"2026-11-23T17:00:00Z"}`,
		"at 9 remind me to leave":                        `{"type":"scheduled","runAt":"2026-11-24T09:00:00Z"}`,
		"remind me tonight to call mum":                  `{"type":"scheduled","runAt":"2026-11-23T20:00:00Z"}`,
		"on Friday at 16:00 send the report":             `{"type":"scheduled","runAt":"2026-11-27T16:00:00Z"}`,
		"next Monday check the numbers":                  `{"type":"scheduled","runAt":"2026-11-30T09:00:00Z"}`,
		"on 2026-12-24 at 18:00 wish us a good time":     `{"type":"scheduled","runAt":"2026-12-24T18:00:00Z"}`,
		"tomorrow at 9 Asia/Tokyo remind me of the call": `{"type":"scheduled","runAt":"2026-11-24T00:00:00Z"}`,
		"erinnere mich morgen um 9 an den Anruf":         `{"type":"scheduled","runAt":"2026-11-24T09:00:00Z","prompt":"Erinnerung: den Anruf"}`,
		"in 5 Minuten erinnere mich an den Tee":          `{"type":"scheduled","runAt":"2026-11-23T10:20:30Z"}`,
		"am 24.12. um 18 Uhr 30 schicke Grüße":           `{"type":"scheduled","runAt":"2026-12-24T18:30:00Z"}`,
		"übermorgen prüfe die Seite":                     `{"type":"scheduled","runAt":"2026-11-25T09:00:00Z"}`,
		"明天9点提醒我打电话":                                     `{"type":"scheduled","runAt":"2026-11-24T09:00:00Z","prompt":"提醒：打电话"}`,
		"5分钟后提醒我喝水":                                      `{"type":"scheduled","runAt":"2026-11-23T10:20:30Z"}`,
		"12月24日下午6点发祝福":                                  `{"type":"scheduled","runAt":"2026-12-24T18:00:00Z"}`,
		"recuérdame mañana a las 9 llamar":               `{"type":"scheduled","runAt":"2026-11-24T09:00:00Z","prompt":"Recordatorio: llamar"}`,
		"en 5 minutos recuérdame beber agua":             `{"type":"scheduled","runAt":"2026-11-23T10:20:30Z"}`,

		// When something happens.
		"when the report is done, tell me":                      `{"type":"conditional","condition":{"type":"task_done","params":{"taskId":"t00000000000000000a02"}}}`,
		"when that is done, draft a mail":                       `{"type":"conditional","condition":{"type":"task_done","params":{"taskId":"t00000000000000000a02"}},"title":"Draft a mail"}`,
		"tell me when the sales report fails":                   `{"type":"conditional","condition":{"type":"task_failed","params":{"taskId":"t00000000000000000a02"}}}`,
		"remind me when t00000000000000000a01 is finished":      `{"type":"conditional","condition":{"type":"task_done","params":{"taskId":"t00000000000000000a01"}}}`,
		"when notes.md changes, tell me":                        `{"type":"conditional","condition":{"type":"file_changed","params":{"path":"notes.md"}},"title":"Tell me"}`,
		"when the file `src/**/*.go` is modified run the tests": `{"type":"conditional","condition":{"type":"file_changed","params":{"path":"src/**/*.go"}}}`,
		"as soon as out/done.txt exists, read it":               `{"type":"conditional","condition":{"type":"file_exists","params":{"path":"out/done.txt"}}}`,
		"wenn der Report fertig ist, sag mir Bescheid":          `{"type":"conditional","condition":{"type":"task_done","params":{"taskId":"t00000000000000000a02"}}}`,
		"wenn sich notes.md ändert, sag mir Bescheid":           `{"type":"conditional","condition":{"type":"file_changed","params":{"path":"notes.md"}}}`,
		"sag mir Bescheid, sobald der Report fehlschlägt":       `{"type":"conditional","condition":{"type":"task_failed","params":{"taskId":"t00000000000000000a02"}}}`,
		"等清理缓存完成后通知我":                                           `{"type":"conditional","condition":{"type":"task_done","params":{"taskId":"t00000000000000000a01"}}}`,
		"当 notes.md 更新了，告诉我":                                    `{"type":"conditional","condition":{"type":"file_changed","params":{"path":"notes.md"}}}`,
		"cuando termine el report, avísame":                     `{"type":"conditional","condition":{"type":"task_done","params":{"taskId":"t00000000000000000a02"}}}`,
		"cuando el report esté terminado, avísame":              `{"type":"conditional","condition":{"type":"task_done","params":{"taskId":"t00000000000000000a02"}}}`,
		"cuando notes.md cambie, avísame":                       `{"type":"conditional","condition":{"type":"file_changed","params":{"path":"notes.md"}}}`,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			sentence{text, "schedule", want}.check(t)
			// The time is in its fields and not in what is to be done.
			_, args := says(text).call(t)
			if prompt, _ := args["prompt"].(string); strings.Contains(prompt, "10") && args["interval"] == float64(600) {
				t.Errorf("prompt = %q, which says the time again", prompt)
			}
			if _, err := json.Marshal(args); err != nil {
				t.Error(err)
			}
		})
	}
}

// What cannot be set up is not, and the answer says why.
func TestDemoDoesNotSchedule(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"remind me today at 9 to stretch":                 "That time is over (2026-11-23T09:00:00Z)",
		"remind me to stretch":                            "When shall that be?",
		"erinnere mich an den Tee":                        "Wann soll das sein?",
		"when the moon landing is finished, tell me":      "I find no open task",
		"when clearing the caches fails, tell me":         "I find no open task",
		"remind me on 2026-02-31 to celebrate":            "When shall that be?",
		"remind me every 99999 fortnights of the holiday": "When shall that be?",
	} {
		s := says(text)
		s.only = []string{"schedule", "create_task"}
		res := s.ask(t)
		if len(res.ToolCalls) > 0 || !strings.Contains(res.Text, want) {
			t.Errorf("%s: %q, %v; want %q", text, res.Text, res.ToolCalls, want)
		}
	}
}
