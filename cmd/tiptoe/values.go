package main

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"tiptoe/internal/config"
)

// wholeNumber reads an int flag. What it says about a bad one is for people,
// not for those who know how wide an int is.
var wholeNumber = kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
	s, err := text(ctx, "number")
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 10, target.Type().Bits())
	if err != nil {
		return fmt.Errorf("%q is not a whole number; write one such as 500", s)
	}
	target.SetInt(n)
	return nil
})

var number = kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
	s, err := text(ctx, "number")
	if err != nil {
		return err
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return fmt.Errorf("%q is not a number; write one such as 1.5", s)
	}
	target.SetFloat(f)
	return nil
})

var duration = kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
	s, err := text(ctx, "duration")
	if err != nil {
		return err
	}
	if s == "0" {
		target.SetInt(0)
		return nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("%q is not a duration; write a number with its unit, such as 90s, 15m or 12h", s)
	}
	target.SetInt(int64(d))
	return nil
})

func text(ctx *kong.DecodeContext, what string) (string, error) {
	t, err := ctx.Scan.PopValue(what)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(fmt.Sprint(t.Value)), nil
}

// mappers make every number and duration of every command read the same.
func mappers() []kong.Option {
	opts := []kong.Option{kong.TypeMapper(reflect.TypeFor[time.Duration](), duration), kong.KindMapper(reflect.Float64, number)}
	for _, k := range []reflect.Kind{reflect.Int, reflect.Int64} {
		opts = append(opts, kong.KindMapper(k, wholeNumber))
	}
	return opts
}

// settings gives the config file's values to the commands they are meant for.
// A key means the same everywhere, but "depth: 5" for crawls must not hide
// pages from a report, and a limit of new crawls must not shorten one that
// goes on.
type settings struct {
	file *config.File
	used map[string]bool
}

// storage are the flags that say where things are: who reads results finds
// them where the crawl of the same file puts them.
var storage = map[string]bool{"data-dir": true, "database-url": true, "redis-url": true, "enable-redis": true, "redis-prefix": true}

// Validate rejects keys that no command knows.
func (s *settings) Validate(app *kong.Application) error { return s.file.Validate(app) }

// Resolve gives kong the file's value for a flag.
func (s *settings) Resolve(ctx *kong.Context, parent *kong.Path, flag *kong.Flag) (any, error) {
	group := ""
	if flag.Group != nil {
		group = flag.Group.Key
	}
	switch command := parent.Node().Name; {
	case storage[flag.Name] && command != "demo", command == "crawl", command == "serve", command == "worker":
	case command == "plan" && (group == "Bounds" || group == "Politeness" || group == "Requests"): // those of a crawl
	case (command == "resume" || command == "demo") && (group == groupMachine || group == groupOutput):
	default:
		return nil, nil
	}
	v, err := s.file.Resolve(ctx, parent, flag)
	if v != nil {
		s.used[flag.Name] = true
	}
	return v, err
}

// Keys of the groups in help that belong to the machine, not to one crawl.
const (
	groupMachine = "Machine"
	groupOutput  = "Output"
)

var flagInError = regexp.MustCompile(`^--([a-z0-9-]+)`)

// blame says where a bad value stands if that is the config file.
func (s *settings) blame(err error) error {
	m := flagInError.FindStringSubmatch(err.Error())
	if m == nil || !s.used[m[1]] {
		return err
	}
	return fmt.Errorf("%w (%s:%d: %s)", err, s.file.Name(), s.file.Line(m[1]), m[1])
}

// environment names the variables of a flag in its help, except the one that
// follows from its name by the rule that the help of tiptoe gives.
func environment(v *kong.Value) string {
	var extra []string
	for _, e := range v.Tag.Envs {
		if e != "TIPTOE_"+strings.ToUpper(strings.ReplaceAll(v.Name, "-", "_")) {
			extra = append(extra, "$"+e)
		}
	}
	if len(extra) == 0 {
		return v.Help
	}
	return v.Help + " (" + strings.Join(extra, ", ") + ")"
}
