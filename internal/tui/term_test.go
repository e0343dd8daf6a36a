package tui

import (
	"os"
	"testing"
)

func TestDetectReadsTheEnvironment(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	env := func(kv map[string]string) func(string) string { return func(k string) string { return kv[k] } }
	if got := Detect(w, env(map[string]string{"TERM": "xterm-256color", "LANG": "C.UTF-8"})); got.Live || got.Colour || !got.Unicode || got.Width != 80 {
		t.Errorf("a pipe is %+v", got)
	}
	for name, c := range map[string]struct {
		env  map[string]string
		want bool
	}{
		"LANG with UTF-8":                {map[string]string{"LANG": "de_DE.UTF-8"}, true},
		"the short spelling":             {map[string]string{"LANG": "en_US.utf8"}, true},
		"the C locale":                   {map[string]string{"LANG": "C"}, false},
		"LC_ALL wins":                    {map[string]string{"LC_ALL": "C", "LANG": "de_DE.UTF-8"}, false},
		"LC_CTYPE wins over LANG":        {map[string]string{"LC_CTYPE": "C.UTF-8", "LANG": "C"}, true},
		"an empty variable does not win": {map[string]string{"LC_ALL": "", "LANG": "C.UTF-8"}, true},
	} {
		if got := utf8Locale(env(c.env)); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
