// Command tiptoe is a web crawler that is as fast as the machine allows and
// never steps on anyone's toes. Each command has a file of its own here; what
// they put together is in package app.
package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"tiptoe/internal/config"
	"tiptoe/internal/tui"
)

// Exit codes [SPEC §9].
const (
	exitOK      = 0
	exitError   = 1
	exitUsage   = 2
	exitPartial = 3
)

// version is set by the release build; otherwise the module's own is shown.
var version = "0.1.0-dev"

func main() {
	// A reader that has seen enough (| head) is an error of the write, so that
	// a crawl can stop gently and a report can end without a word.
	signal.Ignore(syscall.SIGPIPE)
	log.SetOutput(io.Discard) // net/http writes of strangers there; a session logs it
	os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// streams are where a command reads and writes.
type streams struct {
	in       io.Reader
	out, err *os.File
}

// usageError is the user's to mend: exit code 2, nothing was touched.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usageErrorf(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// exitWith ends a command with a code and no further message.
type exitWith int

func (e exitWith) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

type cli struct {
	Config  string           `help:"YAML file with flag names as keys." placeholder:"FILE" env:"TIPTOE_CONFIG" type:"path"`
	Version kong.VersionFlag `help:"Print the version and exit."`

	Crawl   crawlCmd   `cmd:"" help:"Crawl one or more sites."`
	Resume  resumeCmd  `cmd:"" help:"Go on with a crawl that was stopped or killed."`
	Pages   pagesCmd   `cmd:"" help:"List pages of a crawl, with filters."`
	Links   linksCmd   `cmd:"" help:"List broken links and where they are."`
	Export  exportCmd  `cmd:"" help:"Write a crawl as jsonl, csv or sitemap.xml."`
	Crawls  crawlsCmd  `cmd:"" help:"List the crawls in a data directory."`
	Explain explainCmd `cmd:"" help:"Tell what became of one URL, why, and what it waits for."`
	Audit   auditCmd   `cmd:"" help:"Prove from the log that every host was treated as promised."`
	Plan    planCmd    `cmd:"" help:"Predict a crawl from robots.txt and sitemaps."`
	Domains domainsCmd `cmd:"" help:"Show or change what was learned about hosts."`
	Serve   serveCmd   `cmd:"" help:"Run a crawl service with an API and a dashboard."`
	Worker  workerCmd  `cmd:"" help:"Work for the crawls of a fleet, on Redis and PostgreSQL."`
	Workers workersCmd `cmd:"" help:"List who works in a fleet: hosts, rates and what they wait for."`
	Job     jobCmd     `cmd:"" help:"Order crawls from a running tiptoe serve, and see to them."`
	Demo    demoCmd    `cmd:"" help:"Crawl a little web on this machine and watch."`
	URL     urlCmd     `cmd:"" name:"url" help:"Show how URLs are normalised, or why they are refused."`
	Extract extractCmd `cmd:"" help:"List the links of an HTML file."`
	Robots  robotsCmd  `cmd:"" help:"Check URLs against a robots.txt."`
}

const about = `tiptoe crawls websites as fast as the machine allows and as gently as each host asks.

  tiptoe demo                             see everything in a minute, offline
  tiptoe crawl example.com                crawl a site, politely
  tiptoe crawl example.com --max-urls 500 at most 500 pages
  tiptoe resume                           go on after Ctrl+C or a crash
  tiptoe pages --status 4xx               what is broken
  tiptoe links                            and where it is linked from
  tiptoe export --format csv > pages.csv  take the results elsewhere
  tiptoe serve                            a service: API and dashboard

Every flag of a crawl is also an environment variable (--max-urls is TIPTOE_MAX_URLS) and a key of the config file (max-urls: 500), which is tiptoe.yaml in the current folder or named by --config. Flags win over the environment, the environment over the file, the file over the profile.`

// Main runs one command line and returns the exit code.
func Main(args []string, in io.Reader, out, errw *os.File) int {
	st := &streams{in: in, out: out, err: errw}
	fail := func(err error) int { return complain(errw, err) }

	file, err := configFile(args)
	if err != nil {
		return fail(usageError{err})
	}
	var c cli
	set := &settings{file: file, used: map[string]bool{}}
	parser, err := newParser(&c, set, st, args)
	if err != nil {
		return fail(err)
	}
	ctx, code, err := parse(parser, args)
	if err != nil {
		return fail(usageError{set.blame(err)})
	}
	if ctx == nil {
		return code
	}
	err = ctx.Run()
	var exit exitWith
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &exit):
		return int(exit)
	default:
		return fail(err)
	}
}

// reparse reads the command line again, with the environment and the config
// file as they are now.
type reparse func() (*cli, error)

func newParser(c *cli, set *settings, st *streams, args []string) (*kong.Kong, error) {
	again := reparse(func() (*cli, error) {
		file, err := configFile(args)
		if err != nil {
			return nil, err
		}
		var next cli
		set := &settings{file: file, used: map[string]bool{}}
		p, err := newParser(&next, set, st, args)
		if err != nil {
			return nil, err
		}
		if _, _, err = parse(p, args); err != nil {
			return nil, set.blame(err)
		}
		return &next, nil
	})
	return kong.New(c, append(mappers(),
		kong.Name("tiptoe"), kong.Description(about),
		kong.Writers(st.out, st.err), kong.Resolvers(set), kong.Bind(st, again),
		kong.Exit(func(code int) { panic(exitWith(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 80}), kong.ValueFormatter(environment),
		kong.Vars{"version": "tiptoe " + versionText(), "user_agent": "tiptoe/" + strings.TrimSuffix(version, "-dev")},
	)...)
}

// parse turns kong's calls of exit (for --help and --version) into a result.
func parse(p *kong.Kong, args []string) (ctx *kong.Context, code int, err error) {
	defer func() {
		if r := recover(); r != nil {
			exit, ok := r.(exitWith)
			if !ok {
				panic(r)
			}
			ctx, code, err = nil, int(exit), nil
		}
	}()
	if len(args) == 0 {
		args = []string{"--help"}
	}
	ctx, err = p.Parse(args)
	return ctx, exitUsage, err
}

// complain tells an error in a sentence or a few lines and returns its exit code.
func complain(w io.Writer, err error) int {
	if errors.Is(err, syscall.EPIPE) {
		return exitOK // the reader has seen enough
	}
	for i, line := range strings.Split(err.Error(), "\n") {
		if i == 0 {
			line = "tiptoe: " + line
		}
		fmt.Fprintln(w, tui.Clean(line, 2000))
	}
	var usage usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitError
}

// configFile finds the config file before flags are parsed, because its values
// take part in the parsing.
func configFile(args []string) (*config.File, error) {
	path, named := os.Getenv("TIPTOE_CONFIG"), os.Getenv("TIPTOE_CONFIG") != ""
	for i, a := range args {
		if a == "--" {
			break
		}
		if a == "--config" && i+1 < len(args) {
			path, named = args[i+1], true
		} else if v, ok := strings.CutPrefix(a, "--config="); ok {
			path, named = v, true
		}
	}
	if path == "" {
		path = "tiptoe.yaml"
	}
	return config.ReadFile(path, named)
}

func versionText() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				return version + " (" + s.Value[:12] + ")"
			}
		}
	}
	return version
}
