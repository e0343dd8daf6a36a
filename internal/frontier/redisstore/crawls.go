package redisstore

import (
	"context"
	"fmt"

	"tiptoe/internal/frontier"
)

// OpenCrawl implements frontier.Store. A drop that was interrupted is ended
// first.
func (s *Store) OpenCrawl(ctx context.Context, crawl frontier.CrawlID) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.ops.Done()
	if _, open := s.cache.salt(crawl); open {
		return nil
	}
	for {
		dropping, err := s.anyAnswers(ctx, "0", s.everywhere(scriptOpen, crawlText(crawl), flag(s.volatile)))
		if err == nil && dropping {
			err = s.dropAll(ctx, crawl, "0")
		}
		if err != nil {
			return fmt.Errorf("open crawl %d: %w", crawl, err)
		}
		if !dropping {
			s.cache.open(crawl)
			return nil
		}
	}
}

func flag(on bool) string {
	if on {
		return "1"
	}
	return ""
}

// CloseCrawl implements frontier.Store.
func (s *Store) CloseCrawl(crawl frontier.CrawlID) { s.cache.close(crawl) }

// DropCrawl implements frontier.Store. It deletes in small steps; one that is
// interrupted is taken up by the next DropCrawl or OpenCrawl. From its first
// step on other processes that add to the crawl are told that it is not open.
func (s *Store) DropCrawl(ctx context.Context, crawl frontier.CrawlID) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.ops.Done()
	s.cache.close(crawl)
	if err := s.dropAll(ctx, crawl, "1"); err != nil {
		return fmt.Errorf("drop crawl %d: %w", crawl, err)
	}
	return nil
}

// dropAll begins a drop, or only ends one that was begun: a crawl that somebody
// else has opened anew since is left alone.
func (s *Store) dropAll(ctx context.Context, crawl frontier.CrawlID, begin string) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		more, err := s.anyAnswers(ctx, "1", s.everywhere(scriptDrop, crawlText(crawl), begin, fmt.Sprint(dropPage)))
		if err != nil || !more {
			return err
		}
		begin = "0"
	}
}

// anyAnswers runs calls and reports whether one of them gave that answer.
func (s *Store) anyAnswers(ctx context.Context, answer string, calls []call) (bool, error) {
	replies, err := s.run(ctx, calls...)
	if err != nil {
		return false, err
	}
	any := false
	for _, r := range replies {
		n, err := r.AsInt64()
		if err != nil {
			return false, s.strange("crawl", err)
		}
		any = any || fmt.Sprint(n) == answer
	}
	return any, nil
}
