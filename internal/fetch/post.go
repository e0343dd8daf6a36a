package fetch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

// postTimeout bounds a message to a webhook, and postAnswer what is read of
// its answer.
const (
	postTimeout = 15 * time.Second
	postAnswer  = 64 << 10
)

// Post sends a message to an address that a stranger named. The guard judges
// the address that is connected to, so a name cannot be turned afterwards.
// Redirects are answers like any other: they are not followed.
func (c *Client) Post(ctx context.Context, url string, header http.Header, body []byte) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, postTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	for k, vs := range header {
		req.Header[k] = vs
	}
	dialer := net.Dialer{Timeout: postTimeout, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		if why := refusal(to.Addr()); why != "" && !c.cfg.AllowPrivate {
			return fmt.Errorf("refused %s address %s", why, to.Addr())
		}
		return nil
	}}
	t := &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true, TLSHandshakeTimeout: postTimeout,
		MaxResponseHeaderBytes: postAnswer, DisableCompression: true}
	defer t.CloseIdleConnections()
	resp, err := t.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	// What it says is nobody's business, but a reader makes for a clean end.
	_, _ = io.CopyN(io.Discard, resp.Body, postAnswer)
	return resp.StatusCode, nil
}
